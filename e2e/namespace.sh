# For servers that can only listen on every address: a network namespace of their own, with their client inside; to be
# sourced. The script that sources it is run twice: outside, where it installs and builds, and inside.

fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

# Whether we are inside; then $work is the folder made outside.
inside() { work=${TAPEDECK_E2E_WORK:-}; [ -n "$work" ]; }

namespace=(unshare --net)
[ "$(id -u)" = 0 ] || namespace=(unshare --map-root-user --net)
namespace_or_77() {
  "${namespace[@]}" true && return
  echo "NOT RUN: the server needs a network namespace of its own; allow unshare, or run as root" >&2
  exit 77 # for whoever has to tell this from a failure
}

enter() { # script, arguments...
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  TAPEDECK_E2E_WORK=$work "${namespace[@]}" bash "$@"
}

loopback_up() {
  if command -v ip >/dev/null; then
    ip link set lo up
  else
    # A bare system may lack iproute2: the flag IFF_UP by hand.
    python3 -c 'import fcntl, socket, struct; fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sH14x", b"lo", 1))'
  fi
}
