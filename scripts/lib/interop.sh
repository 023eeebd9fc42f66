# SPDX-License-Identifier: Apache-2.0
# The programs of others that the tests in tests/interop contend with, and servers of other versions. Sourced, not run;
# packages.sh must be sourced and `root` be set. Nothing here stops the tests: without the network they go without.

# Installs what tests/interop/package-lock.json names into FOLDER/node_modules. False, with a word why, when it cannot.
ensure_interop_packages() {
    local folder=$1 lock=$root/tests/interop/package-lock.json
    if [[ -d $folder/node_modules ]] && cmp -s "$lock" "$folder/package-lock.json"; then
        return 0
    fi
    if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
        # In a shell of its own, since it ends that when it fails.
        (ensure_packages nodejs npm) || return 1
    fi
    say "packages: installing those of tests/interop"
    mkdir -p "$folder"
    cp "$root/tests/interop/package.json" "$folder"
    # The copy of the lock is the sign that all is there, so it comes last.
    rm -f "$folder/package-lock.json"
    cp "$lock" "$folder/npm-shrinkwrap.json"
    # No package runs a script of its own here.
    (cd "$folder" && npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier --fetch-retries=1 \
        --fetch-timeout=30000 >npm.log 2>&1) || {
        tail -n 5 "$folder/npm.log" >&2
        return 1
    }
    cp "$lock" "$folder/package-lock.json"
}

# Servers that Debian has for other releases, each: name, package, suites. They are unpacked, not installed, together
# with all that they need, the C library included.
dibs_other_servers=(
    "valkey-8.0 valkey-server bookworm,bookworm-backports"
    "redis-8.0 redis-server trixie"
    "valkey-8.1 valkey-server trixie"
)

# Unpacks one of them into FOLDER and makes FOLDER/server, which runs it. False, with a word why, when it cannot.
unpack_server() {
    local folder=$1 package=$2 suites=$3
    if [[ -x $folder/server ]]; then
        return 0
    fi
    command -v apt-get >/dev/null || return 1
    local mirror
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' 'Codename: bookworm' |
        head -n 1)
    [[ -n $mirror ]] || { echo "no source of packages is known" >&2; return 1; }
    say "packages: unpacking $package of ${suites##*,}"
    rm -rf "$folder"
    mkdir -p "$folder"/{lists/partial,archives/partial,root}
    : >"$folder/status"
    {
        printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\n' "$mirror" "${suites//,/ }"
        local keys=/usr/share/keyrings/debian-archive-keyring.gpg
        [[ ! -r $keys ]] || printf 'Signed-By: %s\n' "$keys"
    } >"$folder/apt.sources"
    # Lists, cache and knowledge of what is installed are its own: nothing of the system is touched.
    local apt=(apt-get -qq -o Dir::Etc::sourcelist="$folder/apt.sources" -o Dir::Etc::sourceparts=-
        -o Dir::State::lists="$folder/lists" -o Dir::State::status="$folder/status"
        -o Dir::Cache="$folder" -o APT::Install-Recommends=false -o APT::Sandbox::User=root
        -o Acquire::Retries=1 -o Acquire::http::Timeout=30 -o Debug::NoLocking=true)
    "${apt[@]}" update >"$folder/apt.log" 2>&1 &&
        "${apt[@]}" -y --download-only -t "${suites##*,}" install "$package" >>"$folder/apt.log" 2>&1 || {
        tail -n 3 "$folder/apt.log" >&2
        return 1
    }
    local archive
    for archive in "$folder"/archives/*.deb; do
        dpkg-deb -x "$archive" "$folder/root" || return 1
    done
    rm -rf "$folder"/{archives,lists,status} "$folder"/*.bin
    local program loader
    program=$(find "$folder/root/usr/bin" -name "$package" -print -quit)
    loader=$(find "$folder/root" -name 'ld-linux*.so*' -print -quit)
    [[ -n $program && -n $loader ]] || { echo "$package holds no server" >&2; return 1; }
    local libraries
    libraries=$(find "$folder/root" -name '*.so.*' -printf '%h\n' | sort -u | paste -sd :)
    printf '#!/bin/sh\nexec "%s" --library-path "%s" "%s" "$@"\n' "$loader" "$libraries" "$program" \
        >"$folder/server.new"
    chmod +x "$folder/server.new"
    "$folder/server.new" --version >/dev/null || return 1
    mv "$folder/server.new" "$folder/server"
}

# Prints, with semicolons between, those of the servers that can be had, each as NAME=PROGRAM. What is told goes to
# standard error.
other_servers() {
    local folder=$1 line name package suites found=()
    for line in "${dibs_other_servers[@]}"; do
        read -r name package suites <<<"$line"
        if unpack_server "$folder/$name" "$package" "$suites" >&2; then
            found+=("$name=$folder/$name/server")
        else
            say "tests on $name are left out: it is not to be had here" >&2
        fi
    done
    (IFS=';' && printf '%s' "${found[*]}")
}
