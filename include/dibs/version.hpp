// SPDX-License-Identifier: Apache-2.0
#pragma once

#define DIBS_VERSION_MAJOR 0
#define DIBS_VERSION_MINOR 1
#define DIBS_VERSION_PATCH 0
#define DIBS_VERSION_STRING "0.1.0"
