# Functions of the scripts that install system packages; source this file.

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

# apt_install PACKAGE: true if it could be installed without asking anyone for a password.
apt_install() {
  command -v apt-get >/dev/null || return 1
  local root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null && sudo -n true 2>/dev/null || return 1
    root=(sudo -n)
  fi
  say "installing $1 with apt"
  "${root[@]}" apt-get update -qq >&2 &&
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1" >&2
}
