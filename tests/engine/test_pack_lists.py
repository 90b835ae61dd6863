"""The frame lists of the built-in pack: no function is in two of them."""

from __future__ import annotations

import pytest

from whyhang.engine.positions import MAIN_THREADS, Positions
from whyhang.rules.catalogue import catalogue
from whyhang.rules.load import load_ruleset
from whyhang.rules.patterns import is_regex
from whyhang.schemas.frame import Frame
from whyhang.schemas.stack import Stack

# They sharpen: each is a part of another list, or of two, and says more of some of its functions.
SHARPENING = frozenset(
    {"file_locks", "condition_waits", "two_sided", "rollout_clients", "data_services", "loading"}
)
SITE = "/opt/venv/lib/python3.12/site-packages/"


def frame_of(name: str) -> Frame:
    """The frame of ``module.function``."""
    module, _, function = name.rpartition(".")
    path = module.replace(".", "/") + ".py"
    return Frame(function, SITE + path, path, 1)


def names() -> list[str]:
    """The known functions of torch, and what the lists' own patterns spell out."""
    lists = load_ruleset().lists.values()
    spelled = [
        pattern.replace("*", "some")
        for entry in lists
        if entry.name != MAIN_THREADS
        for pattern in entry.patterns
        if not is_regex(pattern) and "[" not in pattern
    ]
    return [name for name in (*catalogue().functions, *spelled) if "." in name]


def test_lists_are_disjoint() -> None:
    """No known function is claimed by two lists: which of them decides would be chance."""
    positions = Positions(load_ruleset().lists)
    double = {
        name: claims
        for name in names()
        if len(claims := positions.claims(frame_of(name)) - SHARPENING) > 1
    }
    assert len(names()) > 1000
    assert not double


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("torch.distributed.distributed_c10d.all_reduce", "communication"),
        ("torch.distributed.checkpoint.utils.all_gather", "checkpointing"),
        ("torch.distributed.distributed_c10d.destroy_process_group", "teardown"),
        ("torch.cuda.synchronize", "device_wait"),
        ("megatron.core.pipeline_parallel.p2p_communication._communicate", "point_to_point"),
        ("deepspeed.runtime.zero.stage3.fetch_sub_module", "behind_communication"),
        ("zmq.sugar.socket.recv_multipart", "external_wait"),
        ("wandb.sdk.wandb_run.log", "logging_service"),
        ("torch.utils.data._utils.worker._worker_loop", "idle"),
        ("torch.distributed.distributed_c10d.all_gather_single", "communication"),
        (
            "torch.distributed.fsdp._fully_shard._fsdp_collectives.foreach_all_gather",
            "communication",
        ),
        ("deepspeed.comm.torch.all_gather_coalesced", "communication"),
        ("vllm.distributed.parallel_state.broadcast_tensor_dict", "communication"),
        ("sglang.srt.distributed.parallel_state.recv_tensor_dict", "point_to_point"),
        ("torch.distributed.pipelining.schedules._wait_batch_p2p", "point_to_point"),
        ("megatron.core.pipeline_parallel.schedules.pp_post_forward", "point_to_point"),
        (
            "megatron.core.distributed.param_and_grad_buffer.finish_grad_sync",
            "behind_communication",
        ),
        (
            "torch.distributed.fsdp._fully_shard._fsdp_param_group.wait_for_unshard",
            "behind_communication",
        ),
        ("torch.amp.grad_scaler._maybe_opt_step", "device_wait"),
        ("torch.distributed.elastic.utils.store.barrier", "rendezvous"),
        ("megatron.core.datasets.gpt_dataset._build_document_sample_shuffle_indices", "dataloader"),
        ("transformers.modeling_utils.save_pretrained", "checkpointing"),
        ("filelock._api.acquire", "external_wait"),
        ("torch.utils.file_baton.wait", "compiling"),
        ("clearml.task.close", "logging_service"),
        ("tensorboard.summary.writer.event_file_writer.add_event", "logging_service"),
        ("torch.utils.tensorboard.writer.add_scalar", "logging_service"),
        ("torchrec.distributed.comm_ops.forward", "communication"),
        ("triton.runtime.build.compile_module_from_src", "compiling"),
        ("triton.runtime.autotuner._bench", "compiling"),
        ("shutil.copyfileobj", "file_output"),
        ("shutil.rmtree", "file_access"),
        ("multiprocessing.pool._handle_results", "idle"),
        ("multiprocessing.pool.worker", "idle"),
    ],
)
def test_what_is_claimed(name: str, expected: str) -> None:
    """Frames of known frameworks stand in the list that they are meant for."""
    positions = Positions(load_ruleset().lists)
    frame = frame_of(name)
    assert positions.claims(frame) - SHARPENING == {expected}
    assert positions.top(Stack((frame,))) == frame


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ncclGroupEnd", "communication_native"),
        ("PMPI_Barrier", "communication_native"),
        ("ucp_worker_progress", "communication_native"),
        ("gloo::transport::tcp::UnboundBuffer::waitRecv", "communication_native"),
        ("cuStreamSynchronize", "device_native"),
        ("cudaLaunchKernelExC", "device_native"),
        ("cuMemcpyDtoHAsync_v2", "device_native"),
        ("aclrtSynchronizeStreamWithTimeout", "device_native"),
        ("take_gil", "gil_waits"),
        ("at::native::add", None),
    ],
)
def test_what_native_frames_are_claimed(name: str, expected: str | None) -> None:
    """Functions of MPI, NCCL, gloo and of drivers in which a host waits are told from others."""
    frame = Frame(name, "lib.so", "lib.so", 0, "lib.so")
    assert Positions(load_ruleset().lists).claims(frame) == ({expected} if expected else set())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nfs_wait_bit_killable", "storage_kernel"),
        ("rpc_wait_bit_killable", "storage_kernel"),
        ("folio_wait_bit_common", "storage_kernel"),
        ("__folio_lock", "storage_kernel"),
        ("wait_on_page_bit", "storage_kernel"),
        ("__wait_on_buffer", "storage_kernel"),
        ("io_schedule_timeout", "storage_kernel"),
        ("blk_mq_get_tag", "storage_kernel"),
        ("nvme_submit_sync_cmd", "storage_kernel"),
        ("jbd2_log_wait_commit", "storage_kernel"),
        ("wait_transaction_locked", "storage_kernel"),
        ("xlog_wait_on_iclog", "storage_kernel"),
        ("cl_sync_io_wait", "storage_kernel"),
        ("ptlrpc_set_wait", "storage_kernel"),
        ("cxiWaitEventWait", "storage_kernel"),
        ("p9_client_rpc", "storage_kernel"),
        ("wait_for_response", "storage_kernel"),
        ("balance_dirty_pages", "storage_kernel"),
        ("nvidia_unlocked_ioctl", "driver_kernel"),
        ("_nv000644rm", "driver_kernel"),
        ("uvm_va_space_mm_shutdown", "driver_kernel"),
        ("os_acquire_rwlock_read", "driver_kernel"),
        ("mlx5_cmd_exec", "driver_kernel"),
        ("ib_uverbs_reg_mr", "driver_kernel"),
        ("cxi_eq_wait", "driver_kernel"),
        ("kernel_clone", None),
        ("rwsem_down_read_slowpath", None),
        ("futex_wait_queue", None),
        ("wait_for_completion", None),
        ("dma_fence_default_wait", "driver_kernel"),
        # No frame of Python is a function of the kernel.
        ("nvtools.wait", None),
        ("nfs_cache.load", None),
    ],
)
def test_what_kernel_functions_are_claimed(name: str, expected: str | None) -> None:
    """Storage and drivers are told apart; a wait that any subsystem uses tells of neither."""
    frame = Frame(name, module="kernel")
    assert Positions(load_ruleset().lists).claims(frame) == ({expected} if expected else set())
