/* Two ways to get stuck in C, for the lab's training job. */
#define _GNU_SOURCE
#include <unistd.h>

static volatile unsigned long turns;

void spin(void)
{
    for (;;)
        turns++;
}

/* The child shares our memory and never executes a program: until it ends, the kernel keeps the
   calling thread in uninterruptible sleep. */
void vfork_and_wait(void)
{
    if (vfork() == 0) {
        for (;;)
            pause();
    }
}
