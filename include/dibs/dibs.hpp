// SPDX-License-Identifier: Apache-2.0
#pragma once
#if __cplusplus < 202002L
#error "dibs needs C++20: -std=c++20"
#endif
// dibs: exactly one of many processes does a piece of work, and the data can refuse a late writer.
// This header brings everything but the Asio form (<dibs/asio.hpp>) and the callbacks
// (<dibs/async.hpp>).

#include <dibs/cached_value.hpp>
#include <dibs/client.hpp>
#include <dibs/election.hpp>
#include <dibs/error.hpp>
#include <dibs/idempotent.hpp>
#include <dibs/info.hpp>
#include <dibs/key.hpp>
#include <dibs/lease.hpp>
#include <dibs/lease_set.hpp>
#include <dibs/once.hpp>
#include <dibs/options.hpp>
#include <dibs/version.hpp>
