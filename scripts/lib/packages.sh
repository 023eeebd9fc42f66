# SPDX-License-Identifier: Apache-2.0
# The Debian packages that this project needs, and how the scripts install them. Sourced, not run.

dibs_packages_build=(
    g++ cmake ninja-build mold ccache pkg-config
    libboost1.81-dev libsqlite3-dev libssl-dev libpq-dev
    libcli11-dev libfmt-dev nlohmann-json3-dev libtomlplusplus-dev
    libhowardhinnant-date-dev
)
dibs_packages_test=(
    libgtest-dev libgmock-dev librapidcheck-dev libbenchmark-dev
    sqlite3 procps openssl systemd cron
    redis-server libhiredis-dev liblua5.1-0-dev python3-redis
    postgresql-15 pgbouncer libpqxx-dev
)
dibs_packages_lint=(clang-format clang-tidy)

say() {
    printf '==> %s\n' "$*"
}

die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# Prints those of the packages that are not installed.
missing_packages() {
    local package
    for package in "$@"; do
        # One line per architecture, where a package is installed for several.
        dpkg-query -W -f='${Status}\n' "$package" 2>/dev/null | grep -qx 'install ok installed' ||
            printf '%s\n' "$package"
    done
}

# Installs those of the packages that are missing; touches neither apt nor the network when none is.
ensure_packages() {
    if ! command -v dpkg-query >/dev/null; then
        say "this is not a Debian system: going on, provided that you have what these packages bring: $*"
        return 0
    fi
    local missing
    mapfile -t missing < <(missing_packages "$@")
    if ((${#missing[@]} == 0)); then
        say "packages: all $# are installed"
        return 0
    fi

    local as_root=()
    if ((EUID != 0)); then
        command -v sudo >/dev/null ||
            die "these packages are missing, and installing them takes root or sudo: ${missing[*]}"
        as_root=(sudo)
    fi
    say "packages: installing ${missing[*]}"
    # An argument of env rather than an exported variable: sudo passes only that on.
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq update ||
        die "apt-get update failed"
    # At run level 1 no package starts its server: tests start servers of their own.
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
        apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null ||
        die "apt-get could not install: ${missing[*]}"
}
