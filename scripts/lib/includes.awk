# SPDX-License-Identifier: Apache-2.0
# The rules of who may include whom. Input: C++ files by their path from the root. Output: one line per breach,
# `file:line: [rule] why`. A new layer or driver gets its line in layer_of, allowed_in or driver_of.

function complain(rule, why) {
    printf "%s:%d: [%s] %s\n", FILENAME, FNR, rule, why
}

# The part of the project that a path (from src/, or from the root) belongs to.
function layer_of(path) {
    if (path ~ /^src\//) sub(/^src\//, "", path)
    else if (path ~ /^include\/dibs\//) return "public"
    else if (path !~ /\//) return "unknown"
    if (path == "store/open.cpp") return "opener"
    if (path ~ /^store\/[^\/]+\//) { split(path, part, "/"); return "store/" part[2] }
    if (path ~ /^client\/host\//) return "client/host"
    split(path, part, "/")
    return part[1]
}

# What a layer may include of the others, besides itself and <dibs/...>.
function allowed_in(layer, other, path) {
    if (other == layer) return 1
    if (layer == "core") return 0
    if (layer == "opener") return other == "core" || other ~ /^store/  # maps URLs to stores: knows them all
    if (layer == "store" || layer == "store/record" || layer == "store/remote")
        return other == "core" || other == "store" || other == "store/record"
    if (layer ~ /^store\//)
        return other == "core" || other == "store" || other == "store/record" || other == "store/remote"
    if (layer == "recipes") return other == "core" || path == "store/store.hpp"
    if (layer == "guard") return other == "core"
    if (layer == "client/host")  # what a client stands on, which knows no client
        return other == "core" || other == "store" || path == "client/surroundings.hpp"
    if (layer == "client")
        return other == "core" || other ~ /^store/ || other == "recipes" || other == "guard" || other == "client/host"
    if (layer == "cli" || layer == "serve")
        return other == "core" || other ~ /^store/ || other == "recipes" || other == "guard" || other ~ /^client/
    if (layer == "examples") return 0
    return 1  # tests and benchmarks look into everything
}

# The store that a driver's header belongs to; empty for other headers.
function driver_of(path) {
    if (path ~ /^sqlite3(ext)?\.h$/) return "sqlite"
    if (path ~ /^(libpq-fe|libpq-events|postgres_ext)\.h$/ || path ~ /^pqxx\//) return "postgres"
    if (path ~ /^hiredis\// || path ~ /^boost\/redis/ || path ~ /^sw\/redis/ || path ~ /^openssl\//)
        return "redis"
    if (path ~ /^grpc(pp)?\// || path ~ /^etcd\//) return "etcd"
    return ""
}

# Where nothing but the environment handed in may be touched (core/environment.hpp).
function is_pure(layer) {
    return layer == "core" || layer == "recipes" || layer == "store/record"
}

# What runs inside an application, whose other threads may start programs at any time.
function is_library(layer) {
    return is_pure(layer) || layer ~ /^client/ || layer ~ /^store/
}

# Text to values and instants to labels, the same wherever they are computed; for recipes alone.
function is_computation(path, layer) {
    return layer == "recipes" && (path == "nlohmann/json.hpp" || path ~ /^date\//)
}

function is_standard(path) {
    return path ~ /^[a-z0-9_]+$/
}

FNR == 1 {
    file_layer = layer_of(FILENAME)
    if ($0 !~ /SPDX-License-Identifier: Apache-2\.0/)
        complain("licence", "the first line must be the SPDX line")
}

is_pure(file_layer) && /(clock_gettime|_clock::now|sleep_for|sleep_until|random_device|gettimeofday)[ (]/ && !/^ *\/\// {
    complain("clock", "clocks, sleep and randomness come from the environment here")
}

/^[ \t]*#[ \t]*include/ {
    if (match($0, /"[^"]+"/)) quoted = 1
    else if (match($0, /<[^>]+>/)) quoted = 0
    else next
    path = substr($0, RSTART + 1, RLENGTH - 2)
    driver = driver_of(path)

    if (file_layer == "public") {
        if (quoted)
            complain("public", "public headers include <dibs/...> and the standard library, not \"" path "\"")
        else if (!is_standard(path) && path !~ /^dibs\// &&
                 !(FILENAME == "include/dibs/asio.hpp" && path ~ /^boost\//))
            complain("public", "public headers include <dibs/...> and the standard library, not <" path ">")
        next
    }
    if (file_layer == "checker") {
        if (quoted ? (path ~ /\// && path !~ /^checker\//) : !is_standard(path) && path != "nlohmann/json.hpp")
            complain("checker", "the checker must not share our code: " path)
        next
    }
    # TLS is the store's; what seals values is not.
    if (path ~ /^openssl\// && FILENAME ~ /(^|\/)src\/client\/recipes\/sealing_openssl\.cpp$/)
        next
    if (driver != "") {
        if (file_layer != "store/" driver && !(file_layer == "guard" && driver == "postgres") && file_layer != "tests" && file_layer != "bench" &&
            file_layer != "examples")
            complain("driver", path " belongs into src/store/" driver " alone")
        next
    }
    if (!quoted) {
        if (is_library(file_layer) && path == "fstream")
            complain("inherited", "its files are not close-on-exec: store/text_file.hpp")
        if (is_pure(file_layer) && !is_standard(path) && path !~ /^dibs\// && !is_computation(path, file_layer))
            complain("pure", "neither Boost nor the system is known here: <" path ">")
        else if (is_pure(file_layer) && path ~ /^(thread|mutex|condition_variable|future|random|semaphore|latch|barrier)$/)
            complain("pure", "no threads, no randomness here: <" path ">")
        next
    }
    if (path ~ /(^|\/)\.\.?\//) {
        complain("layer", "name the file from src/, without dots: " path)
        next
    }
    if (path !~ /\//) next  # a neighbour
    if (!allowed_in(file_layer, layer_of(path), path))
        complain("layer", "src/" file_layer " must not know " path)
}
