#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What `dibs run` runs under the lock: the same as the other peers do. usage: work.sh FOLDER
set -eu
alone=yes
(set -C; : >"$1/inside") 2>/dev/null || { alone=no; echo "dibs run beside another" >>"$1/overlaps"; }
read -r count <"$1/count" || :
sleep 0.001
printf '%s' $((count + 1)) >"$1/count"
if [ $alone = yes ]; then
    rm "$1/inside"
fi
