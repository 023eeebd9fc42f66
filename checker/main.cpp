// SPDX-License-Identifier: Apache-2.0
#include "checker/command.hpp"

#include <iostream>

int main(int count, char** words) {
    std::ios::sync_with_stdio(false);
    return dibs_checker::run_command({words + 1, words + count}, std::cin, std::cout, std::cerr);
}
