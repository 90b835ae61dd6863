"""Command lines made safe to paste: no secrets, no home directories.

Masks by three signs: an option or variable whose name says that it holds a secret, a URL with
credentials in it, and the known shapes of access tokens. In doubt it masks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

MASK = "***"

# The last word of a name decides: `--hf-token` is a secret, `--tokenizer` and `--pad-token-id`
# are not.
_SECRET = re.compile(
    r"apikey|apitoken|auth|authorization|authtoken|bearer|cookie|credentials?|passphrase|passwd"
    r"|password|pwd|secrets?|accesskey|secretkey|privatekey"
)
_KEY_OWNER = re.compile(
    r"access|account|api|app|auth|client|encryption|license|master|private|secret|service|shared"
    r"|signing|ssh|storage|user|wandb|comet|neptune|openai|anthropic|hf"
)
# Training's own tokens: words of a vocabulary, not of a login.
_VOCABULARY = re.compile(
    r"pad|eos|bos|unk|mask|sep|cls|eot|eod|special|end|start|begin|stop|image|video|audio|speech"
    r"|text|think|prompt|placeholder|per|max|min|num|new"
)
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_OPTION = re.compile(r"(-{1,2}|\+{0,2})([A-Za-z][\w.\-]*)")
# A name is tried from its beginning only: in a word of 16 kB, from each letter would take seconds.
_NAMED_VALUE = re.compile(
    r"""(?P<name>(?<![\w.\-])(?=[\d.\-_]*[^\W\d_])[\w.\-]+)(?P<sign>["']?\s*[=:]\s*)(?P<value>"[^"]*"|'[^']*'|[^\s"',;&|}]+)"""
)
_URL_LOGIN = re.compile(r"\b([a-zA-Z][a-zA-Z0-9+.\-]{0,40}://)[^\s/@]+@")
_URL_SECRET = re.compile(
    r"([?&](?:sig|signature|x-amz-signature|x-amz-credential|x-amz-security-token|x-goog-signature"
    r"|token|access_token|key|api_key|password)=)[^&\s'\"]+",
    re.IGNORECASE,
)
_BEARER = re.compile(r"\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=\-]{8,}", re.IGNORECASE)
_TOKENS = re.compile(
    r"""(?<![A-Za-z0-9])(?:
        hf_[A-Za-z0-9]{8,} | api_org_[A-Za-z0-9]{8,}             # Hugging Face
      | sk-[A-Za-z0-9_\-]{8,} | sk_(?:live|test)_[A-Za-z0-9]{8,} # OpenAI, Anthropic, Stripe
      | gh[pousr]_[A-Za-z0-9]{16,} | github_pat_\w{16,} | glpat-[\w\-]{16,}
      | xox[abeoprs]-[A-Za-z0-9\-]{8,}                           # Slack
      | (?:AKIA|ASIA)[0-9A-Z]{16} | AIza[\w\-]{30,} | ya29\.[\w\-]{16,}
      | nvapi-[\w\-]{16,} | wandb_v\d_\w{16,} | pypi-[\w\-]{16,} | dop_v1_\w{16,}
      | eyJ[\w\-]{8,}\.[\w\-]{8,}\.[\w\-]*                       # JSON web token
    )""",
    re.VERBOSE,
)
_PEM = re.compile(r"-----BEGIN [A-Z ]*KEY-----.*?(?:-----END [A-Z ]*KEY-----|\Z)", re.DOTALL)
_HOME = re.compile(
    r"""(?<![\w./~\-])(?:/home/[^/\s:,;'"=]+|/Users/[^/\s:,;'"=]+|/root)(?![\w.\-])"""
)


def mask_cmdline(words: Sequence[str], *, homes: Iterable[str] = ()) -> tuple[str, ...]:
    """The words of a command line without secrets; ``homes`` are further home directories."""
    homes = tuple(homes)
    masked: list[str] = []
    value_is_secret = False
    for word in words:
        if value_is_secret and not word.startswith("--"):
            masked.append(MASK)
            value_is_secret = False
            continue
        option = _OPTION.fullmatch(word)
        value_is_secret = bool(
            option and option.group(1).startswith("-") and names_secret(option.group(2))
        )
        masked.append(mask_text(word, homes=homes))
    return tuple(masked)


def mask_text(text: str, *, homes: Iterable[str] = ()) -> str:
    """A text without secrets and home directories."""
    text = _PEM.sub(MASK, text)
    text = _URL_LOGIN.sub(rf"\g<1>{MASK}@", text)
    text = _URL_SECRET.sub(rf"\g<1>{MASK}", text)
    text = _BEARER.sub(rf"\g<1> {MASK}", text)
    text = _NAMED_VALUE.sub(_mask_value, text)
    text = _TOKENS.sub(MASK, text)
    return shorten_homes(text, homes=homes)


def shorten_homes(text: str, *, homes: Iterable[str] = ()) -> str:
    """Home directories as ``~``: the usual places, and those given."""
    for home in homes:
        home = home.rstrip("/")
        if home.count("/") >= 2:  # `/` or `/data` as a home would shorten every path
            text = re.sub(rf"(?<![\w./~\-]){re.escape(home)}(?![\w.\-])", "~", text)
    return _HOME.sub("~", text)


def names_secret(name: str) -> bool:
    """Whether an option or variable of this name holds a secret."""
    words = [word.lower() for word in _WORDS.findall(name)]
    if not words:
        return False
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if _SECRET.fullmatch(last):
        return True
    if last == "token":
        return _VOCABULARY.fullmatch(before) is None
    return last == "key" and _KEY_OWNER.fullmatch(before) is not None


def _mask_value(match: re.Match[str]) -> str:
    if not names_secret(match.group("name")):
        return match.group(0)
    value = match.group("value")
    if value.startswith("//"):  # `scheme://…`, not `name: value`
        return match.group(0)
    quote = value[0] if value[0] in "\"'" else ""
    return f"{match.group('name')}{match.group('sign')}{quote}{MASK}{quote}"
