"""Command lines that are safe to paste."""

from __future__ import annotations

import pytest

from whyhang.collectors.masking import MASK, mask_cmdline, mask_text


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--token", "abc"), ("--token", MASK)),
        (("--hf-token=abc",), (f"--hf-token={MASK}",)),
        (("--hub_token", "abc", "--lr", "1"), ("--hub_token", MASK, "--lr", "1")),
        (("-password", "-x1"), ("-password", MASK)),
        (("--apiKey", "abc"), ("--apiKey", MASK)),
        (("--wandb-api-key", "abc"), ("--wandb-api-key", MASK)),
        (("+logger.wandb.api_key=abc",), (f"+logger.wandb.api_key={MASK}",)),
        (("env", "HF_TOKEN=abc", "X=1"), ("env", f"HF_TOKEN={MASK}", "X=1")),
        (
            ("-c", "AWS_SECRET_ACCESS_KEY='a b'; run"),
            ("-c", f"AWS_SECRET_ACCESS_KEY='{MASK}'; run"),
        ),
        (('{"api_key": "abc", "lr": 1}',), (f'{{"api_key": "{MASK}", "lr": 1}}',)),
        (("--token", "--verbose"), ("--token", "--verbose")),
    ],
)
def test_values_of_secret_names_are_masked(
    words: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    """The value of an option or variable that names a secret never shows."""
    assert mask_cmdline(words) == expected


@pytest.mark.parametrize(
    "words",
    [
        ("--tokenizer", "llama", "--pad-token", "0", "--max-tokens", "512"),
        ("--eos_token=</s>", "--key", "image", "--num-token", "5"),
        ("--author", "me", "--monkey=3", "http://host:80/path", "--tokenizer-path=s3://b/k"),
        ("python3", "-u", "train.py", "--local-rank=0"),
    ],
)
def test_ordinary_options_stay(words: tuple[str, ...]) -> None:
    """Names that only resemble secrets keep their values, which tell the configuration."""
    assert mask_cmdline(words) == words


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("s3://user:pa55@minio:9000/b", "pa55"),
        ("https://ghp_012345678901234567890@github.com/x", "ghp_0123"),
        ("https://h/x?sig=pa55&y=1", "pa55"),
        ("hf_abcdefghijklmnop", "hf_abc"),
        ("x=sk-proj-0123456789abcdef", "sk-proj"),
        ("AKIAIOSFODNN7EXAMPLE", "AKIA"),
        ("Authorization: Bearer abcdef0123456", "abcdef"),
        ("eyJhbGciOiJI.eyJzdWIiOiIx.abc", "eyJh"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "MIIE"),
    ],
)
def test_known_shapes_of_secrets_are_masked(text: str, secret: str) -> None:
    """Credentials are found by their shape where no name gives them away."""
    assert secret not in mask_text(text)
    assert MASK in mask_text(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/home/alice/train.py", "~/train.py"),
        ("--data=/home/alice", "--data=~"),
        ("/root/.cache:/Users/bob/x", "~/.cache:~/x"),
        ("/rootfs/x /data/home/alice /srv/nfs/carol/x", "/rootfs/x /data/home/alice ~/x"),
    ],
)
def test_home_directories_are_shortened(text: str, expected: str) -> None:
    """A home directory shows as ~, other paths that contain one do not change."""
    assert mask_text(text, homes=("/srv/nfs/carol",)) == expected
