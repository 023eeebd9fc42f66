// SPDX-License-Identifier: Apache-2.0
#pragma once
// A CA of the test's own and what it signs, made by the command `openssl` in a temporary folder.

#include "support/temporary_folder.hpp"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace dibs::testing {

/// A certificate and its key, by their files.
struct proof {
    std::string certificate;
    std::string key;
};

class test_certificates {
  public:
    /// `who` is the common name of the CA.
    explicit test_certificates(const std::string& who = "dibs test CA") {
        std::ofstream{at("settings")} << "[ca]\ndefault_ca = own\n[own]\ndatabase = " << at("made")
                                      << "\nnew_certs_dir = " << folder_.path().string()
                                      << "\nrand_serial = yes\ndefault_md = sha256\npolicy = any\n"
                                         "unique_subject = no\n[any]\ncommonName = supplied\n";
        std::ofstream{at("made")};
        run("req -x509 " + new_key("ca") + " -days 30 -out " + ca() + " -subj '/CN=" + who + "'");
    }

    [[nodiscard]] std::string ca() const { return at("ca.pem"); }

    /// For 127.0.0.1 and localhost.
    [[nodiscard]] proof server() const {
        return sign("server", "IP:127.0.0.1,DNS:localhost,DNS:locks.example");
    }
    /// `names` as subjectAltName has them; for a month from now if no other times are given.
    [[nodiscard]] proof sign(const std::string& file,
                             const std::string& names,
                             const std::string& begins = {},
                             const std::string& ends = {}) const {
        std::ofstream{at(file + ".more")}
            << "basicConstraints = CA:FALSE\nsubjectAltName = " << names << "\n";
        run("req " + new_key(file) + " -out " + at(file + ".asked") + " -subj /CN=" + file);
        run("ca -batch -notext -config " + at("settings") + " -cert " + ca() + " -keyfile " +
            at("ca.key") + " -in " + at(file + ".asked") + " -out " + at(file + ".pem") +
            " -extfile " + at(file + ".more") +
            (begins.empty() ? " -days 30" : " -startdate " + begins + " -enddate " + ends));
        return {at(file + ".pem"), at(file + ".key")};
    }
    [[nodiscard]] std::string at(const std::string& file) const {
        return (folder_.path() / file).string();
    }
    void run(const std::string& words) const {
        const auto line = "openssl " + words + " >>" + at("log") + " 2>&1 </dev/null";
        if (std::system(line.c_str()) != 0) {
            std::ifstream told{at("log")};
            throw std::runtime_error{"openssl " + words + ": " +
                                     std::string{std::istreambuf_iterator<char>{told}, {}}};
        }
    }

  private:
    [[nodiscard]] std::string new_key(const std::string& file) const {
        return "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout " + at(file + ".key");
    }

    temporary_folder folder_;
};

}  // namespace dibs::testing
