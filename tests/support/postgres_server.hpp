// SPDX-License-Identifier: Apache-2.0
#pragma once
// A real PostgreSQL server of the test's own: on a free port of 127.0.0.1 and on a socket in a
// folder of its own, ended with the test. And a PgBouncer in front of it.

#include "support/places.hpp"
#include "support/postgres_session.hpp"
#include "support/server_clock.hpp"
#include "support/temporary_folder.hpp"
#include "support/test_process.hpp"

#include <sys/file.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace dibs::testing {

/// That user's, with all in it; as it is where there is none.
inline void give_to_plain_user(const std::filesystem::path& folder) {
    if (const auto user = plain_user_for_servers()) {
        (void)::lchown(folder.c_str(), user->user, user->group);
        for (const auto& entry : std::filesystem::recursive_directory_iterator{folder}) {
            (void)::lchown(entry.path().c_str(), user->user, user->group);
        }
    }
}

[[nodiscard]] inline std::string text_in(const std::filesystem::path& name) {
    std::ifstream file{name};
    std::ostringstream all;
    all << file.rdbuf();
    return all.str();
}

/// The folder of a server that never ran, made once per build folder: initdb takes longer than most
/// tests.
[[nodiscard]] inline std::filesystem::path postgres_template() {
    const std::filesystem::path made = tests::places::postgres_template;
    const int guard = ::open((made.string() + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (guard < 0 || ::flock(guard, LOCK_EX) != 0) {
        throw std::system_error{errno, std::generic_category(), made.string()};
    }
    if (!std::filesystem::exists(made)) {
        const temporary_folder place;
        const auto data = place.path() / "data";
        give_to_plain_user(place.path());
        test_process maker{{std::string{DIBS_POSTGRES_PROGRAMS} + "/initdb",
                            "--pgdata=" + data.string(),
                            "--username=postgres",
                            "--auth=trust",
                            "--encoding=UTF8",
                            "--locale=C",
                            "--wal-segsize=1",
                            "--no-sync"},
                           place.path().string(),
                           (place.path() / "log").string()};
        if (maker.join() != 0) {
            ::close(guard);
            throw std::runtime_error{"initdb: " + text_in(place.path() / "log")};
        }
        const auto half = made.string() + ".half";
        std::filesystem::remove_all(half);
        std::filesystem::copy(data, half, std::filesystem::copy_options::recursive);
        std::filesystem::rename(half, made);
    }
    ::close(guard);
    return made;
}

class postgres_server {
  public:
    using words = std::vector<std::string>;

    /// `settings`: `name=value`, on top of fast ones (fsync=off, which no death of a process shows).
    explicit postgres_server(words settings = {}, const server_clock* clock = nullptr)
        : settings_(std::move(settings)), clock_(clock) {
        std::filesystem::copy(
            postgres_template(), data(), std::filesystem::copy_options::recursive);
        come_up();
    }
    /// A standby that follows `primary` by streaming, as `name` (for synchronous_standby_names).
    postgres_server(const postgres_server& primary, const std::string& name, words settings = {})
        : settings_(std::move(settings)) {
        give_to_plain_user(folder_.path());
        test_process copier{{std::string{DIBS_POSTGRES_PROGRAMS} + "/pg_basebackup",
                             "--pgdata=" + data().string(),
                             "--dbname=" + primary.socket_url() + "&application_name=" + name,
                             "--checkpoint=fast",
                             "--no-sync",
                             "--write-recovery-conf"},
                            folder_.path().string(),
                            log_file()};
        if (copier.join() != 0) {
            throw std::runtime_error{"pg_basebackup: " + log()};
        }
        come_up();
    }
    postgres_server(const postgres_server&) = delete;
    postgres_server& operator=(const postgres_server&) = delete;
    ~postgres_server() { crash(); }

    [[nodiscard]] int port() const noexcept { return port_; }
    [[nodiscard]] std::string url(const std::string& database = "postgres",
                                  const std::string& user = "postgres") const {
        return "postgres://" + user + "@127.0.0.1:" + std::to_string(port_) + "/" + database;
    }
    /// By the unix socket; takes further parameters after `&`.
    [[nodiscard]] std::string socket_url(const std::string& database = "postgres",
                                         const std::string& user = "postgres") const {
        return "postgres://" + user + "@/" + database + "?host=" + folder() +
               "&port=" + std::to_string(port_);
    }
    [[nodiscard]] std::string folder() const { return folder_.path().string(); }
    [[nodiscard]] std::string log() const { return text_in(log_file()); }
    [[nodiscard]] postgres_session connect(const std::string& database = "postgres",
                                           const std::string& user = "postgres") const {
        return postgres_session{socket_url(database, user)};
    }
    /// Statements over a connection of their own: the answer of the last one.
    std::string ask(const std::string& sql, const std::string& database = "postgres") const {
        try {
            return connect(database).ask(sql);
        } catch (const std::runtime_error& trouble) {
            return std::string{"no connection: "} + trouble.what();
        }
    }
    /// Whether some session waits for a lock (a row, a table, an advisory one).
    [[nodiscard]] bool has_waiting_session() const {
        return ask("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'") != "0";
    }

    /// At the same place, with its data. False: it did not come up.
    [[nodiscard]] bool start() {
        words line;
        if (clock_ != nullptr) {
            line = clock_->wrapper();
        }
        for (const auto& word :
             words{std::string{DIBS_POSTGRES_PROGRAMS} + "/postgres", "-D", data().string()}) {
            line.push_back(word);
        }
        words all{"port=" + std::to_string(port_),
                  "listen_addresses=127.0.0.1",
                  "unix_socket_directories=" + folder(),
                  "fsync=off",
                  "shared_buffers=16MB",
                  "max_wal_senders=4"};
        all.insert(all.end(), settings_.begin(), settings_.end());
        for (const auto& one : all) {
            line.push_back("-c");
            line.push_back(one);
        }
        // QUIT: the server takes its children along.
        process_ = test_process{line, folder(), log_file(), SIGQUIT};
        return eventually([&] { return answers() || process_.ended(); },
                          std::chrono::seconds{60}) &&
               !process_.ended();
    }
    /// In good order: sessions are ended, all is written.
    void stop() { process_.end(SIGINT); }
    /// At once, nothing more is written; the next start recovers.
    void crash() { process_.end(SIGQUIT); }
    /// All of its processes, by KILL.
    void kill() {
        process_.signal(SIGSTOP);
        const auto all = children();
        for (const auto child : all) {
            ::kill(child, SIGKILL);
        }
        process_.end(SIGKILL);
        // Their shared memory goes with the last of them; before that the server does not start.
        (void)eventually([&] {
            return std::all_of(all.begin(), all.end(), [](pid_t child) {
                const auto stat = text_in("/proc/" + std::to_string(child) + "/stat");
                return stat.empty() || stat.find(") Z") != std::string::npos;
            });
        });
    }
    /// One more run with the same settings and these on top. False: it did not come up.
    [[nodiscard]] bool restart(const words& more = {}) {
        stop();
        settings_.insert(settings_.end(), more.begin(), more.end());
        return start();
    }
    /// It neither does nor hears anything until it thaws.
    void freeze() const {
        process_.signal(SIGSTOP);
        for (const auto child : children()) {
            ::kill(child, SIGSTOP);
        }
    }
    void thaw() const {
        for (const auto child : children()) {
            ::kill(child, SIGCONT);
        }
        process_.signal(SIGCONT);
    }
    /// A standby becomes a primary.
    void promote() const { (void)ask("SELECT pg_promote()"); }

  private:
    [[nodiscard]] std::filesystem::path data() const { return folder_.path() / "data"; }
    [[nodiscard]] std::string log_file() const { return (folder_.path() / "log").string(); }
    void come_up() {
        give_to_plain_user(folder_.path());
        for (int attempt = 0; attempt < 10; ++attempt) {
            port_ = free_port();
            if (start()) {
                return;
            }
        }
        throw std::runtime_error{"no PostgreSQL came up: " + log()};
    }
    [[nodiscard]] bool answers() const { return ::PQping(socket_url().c_str()) == PQPING_OK; }
    /// While their parent stands still they can be neither more nor reaped, so the ids are theirs.
    [[nodiscard]] std::vector<pid_t> children() const {
        std::vector<pid_t> all;
        for (const auto& entry : std::filesystem::directory_iterator{"/proc"}) {
            const auto name = entry.path().filename().string();
            if (name.find_first_not_of("0123456789") != std::string::npos) {
                continue;
            }
            // `pid (name) state parent …`; the name may hold anything.
            const auto stat = text_in(entry.path() / "stat");
            std::istringstream rest{stat.substr(stat.rfind(')') + 1)};
            char state = 0;
            pid_t parent = 0;
            if (rest >> state >> parent && process_.id() > 0 && parent == process_.id()) {
                all.push_back(static_cast<pid_t>(std::stol(name)));
            }
        }
        return all;
    }

    temporary_folder folder_;
    words settings_;
    const server_clock* clock_ = nullptr;
    int port_ = 0;
    test_process process_;
};

/// Whether this build knows a PgBouncer.
[[nodiscard]] inline bool has_pgbouncer() {
    return *DIBS_PGBOUNCER != '\0';
}

/// Hands transactions to sessions of the server as it likes (pool_mode=transaction).
class pgbouncer {
  public:
    /// `settings`: lines for [pgbouncer], on top of two server sessions for any number of clients.
    explicit pgbouncer(const postgres_server& server, const std::vector<std::string>& settings = {})
        : settings_(settings), host_(server.folder()), server_port_(server.port()) {
        give_to_plain_user(folder_.path());
        for (int attempt = 0; attempt < 10; ++attempt) {
            port_ = free_port();
            if (start()) {
                return;
            }
        }
        throw std::runtime_error{"no PgBouncer came up: " + log()};
    }

    [[nodiscard]] int port() const noexcept { return port_; }
    [[nodiscard]] std::string url(const std::string& database = "postgres") const {
        return "postgres://postgres@127.0.0.1:" + std::to_string(port_) + "/" + database;
    }
    [[nodiscard]] std::string log() const { return text_in(folder_.path() / "log"); }
    /// A command of its console: `RECONNECT`, `KILL postgres`, `SHOW SERVERS`.
    std::string command(const std::string& text) const {
        return postgres_session{url("pgbouncer")}.ask(text);
    }
    void kill() { process_.end(SIGKILL); }
    void freeze() const { process_.signal(SIGSTOP); }
    void thaw() const { process_.signal(SIGCONT); }
    /// At the same place. False: it did not come up.
    [[nodiscard]] bool start() {
        const auto configuration = folder_.path() / "pgbouncer.ini";
        std::ofstream file{configuration};
        file << "[databases]\n* = host=" << host_ << " port=" << server_port_
             << " user=postgres\n[pgbouncer]\nlisten_addr=127.0.0.1\nlisten_port=" << port_
             << "\nunix_socket_dir=\nauth_type=any\nadmin_users=postgres\npool_mode=transaction\n"
             << "default_pool_size=2\nmax_client_conn=500\n";
        for (const auto& one : settings_) {
            file << one << '\n';
        }
        file.close();
        give_to_plain_user(folder_.path());
        process_ = test_process{{DIBS_PGBOUNCER, configuration.string()},
                                folder_.path().string(),
                                (folder_.path() / "log").string()};
        return eventually([&] {
                   return ::PQping(url("pgbouncer").c_str()) == PQPING_OK || process_.ended();
               }) &&
               !process_.ended();
    }

  private:
    temporary_folder folder_;
    std::vector<std::string> settings_;
    std::string host_;
    int server_port_;
    int port_ = 0;
    test_process process_;
};

}  // namespace dibs::testing
