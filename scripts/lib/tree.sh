# SPDX-License-Identifier: Apache-2.0
# Questions about the source tree. Sourced, not run; `root` must be set.

# Paths, relative to the root, of the tracked files that match the patterns. Without git (a source archive) all files
# outside build/ count.
tracked_files() {
    # The tree may belong to somebody else than the caller, as it does in a container.
    if git -C "$root" -c safe.directory="$root" ls-files -- "$@" 2>/dev/null | grep .; then
        return 0
    fi
    local names=() pattern
    for pattern in "$@"; do
        names+=(${names[0]+-o} -name "$pattern")
    done
    (cd "$root" && find . \( -path ./build -o -path ./.git \) -prune -o -type f \( "${names[@]}" \) -print) |
        sed 's|^\./||' | sort
}

# ccache must not fail a build for want of a home directory; and another clone of this tree is the same to it, wherever it
# lies.
find_home_for_ccache() {
    if [[ -z ${CCACHE_DIR:-} && ! -w ${HOME:-/nonexistent} ]]; then
        export CCACHE_DIR=$root/build/ccache
    fi
    export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$root} CCACHE_NOHASHDIR=1
}

# Runs a command and prints how many seconds it took.
timed() {
    local what=$1 start=$SECONDS status=0
    shift
    "$@" || status=$?
    printf '==> %s: %d s\n' "$what" $((SECONDS - start))
    return "$status"
}
