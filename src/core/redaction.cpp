// SPDX-License-Identifier: Apache-2.0
#include "core/redaction.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

namespace dibs::core {

namespace {

constexpr auto npos = std::string_view::npos;
constexpr std::string_view blanks = " \t\n";

std::string lower(std::string_view text) {
    std::string made(text);
    std::transform(made.begin(), made.end(), made.begin(), [](unsigned char letter) {
        return static_cast<char>(std::tolower(letter));
    });
    return made;
}

bool is_digit(char letter) {
    return letter >= '0' && letter <= '9';
}

bool is_of_a_name(char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' ||
           letter == '-' || letter == '.' || letter == '%';
}

/// Where the name that ends before `end` begins.
std::size_t begin_of_name(std::string_view text, std::size_t end) {
    while (end > 0 && is_of_a_name(text[end - 1])) {
        --end;
    }
    return end;
}

// --- passwords in URLs ---------------------------------------------------------------------------

/// `user@`, without a password: a long one is a credential by itself, as code hosts hand out.
constexpr std::size_t longest_user = 19;

/// Where the password of a URL, whose authority begins there, begins and ends; nothing when there
/// is none. People write `/` and `@` into passwords without encoding them: the last @ counts.
struct range {
    std::size_t begin = 0;
    std::size_t end = 0;
};
range password_in(std::string_view word, std::size_t authority) {
    const auto ends = [&](std::string_view signs) {
        return std::min(word.find_first_of(signs, authority), word.size());
    };
    const auto url_end = ends(" \t\n\"'");
    const auto strict_end = std::min(ends("/?#"), url_end);
    const auto colon = word.find(':', authority);
    if (colon == npos || colon >= strict_end || word.substr(authority, 1) == "[" ||
        word.substr(authority, colon - authority).find('@') != npos) {
        const auto sign = word.substr(0, strict_end).rfind('@');
        const bool long_user = sign != npos && sign >= authority && sign - authority > longest_user;
        return long_user ? range{authority, sign} : range{};
    }
    const auto port = word.substr(colon + 1, strict_end - colon - 1);
    if (!port.empty() && port.size() <= 5 && std::all_of(port.begin(), port.end(), is_digit)) {
        return {};
    }
    auto sign = word.substr(0, url_end).rfind('@');
    if (sign == npos || sign < colon) {
        sign = word.find('@', url_end);  // a password with a blank, in a word that has some
    }
    return sign == npos ? range{} : range{colon + 1, sign};
}

std::string without_passwords(std::string word) {
    for (auto at = word.find("://"); at != std::string::npos; at = word.find("://", at + 3)) {
        const auto found = password_in(word, at + 3);
        if (found.end > found.begin) {
            word.replace(found.begin, found.end - found.begin, blank);
        }
    }
    return word;
}

// --- command lines -------------------------------------------------------------------------------

/// Options of well-known programs that carry a secret without saying so.
struct telling_option {
    std::string_view program;  ///< the beginning of its name
    std::string_view option;
    bool apart;        ///< the next word is the value
    bool glued;        ///< the rest of the word is the value
    bool after_colon;  ///< only what follows the first colon of it: user:password
};
constexpr std::array telling_options{
    telling_option{"mysql", "-p", false, true, false},
    telling_option{"mariadb", "-p", false, true, false},
    telling_option{"redis-cli", "-a", true, false, false},
    telling_option{"valkey-cli", "-a", true, false, false},
    telling_option{"sshpass", "-p", true, true, false},
    telling_option{"ldap", "-w", true, true, false},
    telling_option{"mosquitto", "-P", true, true, false},
    telling_option{"zip", "-P", true, true, false},
    telling_option{"unzip", "-P", true, true, false},
    telling_option{"curl", "-u", true, true, true},
    telling_option{"curl", "--user", true, false, true},
    telling_option{"curl", "--proxy-user", true, false, true},
};

bool is_program(std::string_view word, std::string_view beginning) {
    const auto name = word.substr(word.rfind('/') + 1);
    return name.starts_with(beginning);
}

/// Whether a header of this name carries a secret; `certain`: that it is a header is known.
bool is_secret_header(std::string_view name, bool certain) {
    const auto low = lower(name);
    return low.find("authorization") != std::string::npos || low.ends_with("cookie") ||
           (speaks_of_a_secret(low) &&
            (low.starts_with("x-") || (certain && low.find('-') != std::string::npos)));
}

/// Texts between blanks, quotes heeded as a shell does, and the blanks between them.
std::vector<std::string_view> pieces_of(std::string_view text, bool heed_quotes) {
    std::vector<std::string_view> pieces;
    for (std::size_t at = 0; at < text.size();) {
        const auto begin = at;
        if (blanks.find(text[at]) != npos) {
            at = std::min(text.find_first_not_of(blanks, at), text.size());
        } else {
            while (at < text.size() && blanks.find(text[at]) == npos) {
                const bool quote = heed_quotes && (text[at] == '"' || text[at] == '\'');
                const auto closing = quote ? text.find(text[at], at + 1) : npos;
                at = closing != npos ? closing + 1 : at + 1;
            }
        }
        pieces.push_back(text.substr(begin, at - begin));
    }
    return pieces;
}

class command_reader {
  public:
    /// The next word, fit to be shown.
    std::string read(const std::string& given) {
        const auto kept = std::exchange(expected_, what::nothing);
        if (given.empty() || given.starts_with(blank)) {
            // Blanked by somebody else before; or an empty word, after which a secret may follow.
            expected_ = given.empty() ? kept : what::nothing;
            return given;
        }
        if (kept == what::secret && given[0] != '-') {
            return std::string(blank);
        }
        if (kept == what::login && given[0] != '-') {
            return after_colon(given, 0);
        }
        if (kept == what::header) {
            return header_value(given);
        }
        if (auto told = option_of_program(given)) {
            return *told;
        }
        note_program(given);
        auto word = without_passwords(given);
        return word.find_first_of(blanks) == std::string::npos ? single(std::move(word))
                                                               : with_blanks(std::move(word));
    }

    /// A text of several words: a command line, a script for `sh -c`, or a body.
    static std::string text(std::string_view all, int depth) {
        constexpr int deepest = 4;
        auto pieces = pieces_of(all, depth < deepest);
        if (pieces.size() == 1) {
            pieces = pieces_of(all, false);
        }
        command_reader inner;
        inner.depth_ = depth;
        std::string shown;
        for (const auto piece : pieces) {
            if (blanks.find(piece[0]) != npos) {
                shown += piece;
                continue;
            }
            const bool quoted = piece.size() > 1 && piece.front() == piece.back() &&
                                (piece.front() == '"' || piece.front() == '\'');
            if (quoted) {
                shown += piece.front();
                shown += inner.read(std::string(piece.substr(1, piece.size() - 2)));
                shown += piece.back();
            } else {
                shown += inner.read(std::string(piece));
            }
        }
        return shown;
    }

  private:
    enum class what { nothing, secret, login, header };

    static std::string after_colon(const std::string& word, std::size_t from) {
        const auto colon = word.find(':', from);
        return colon == std::string::npos || colon + 1 == word.size()
                   ? word
                   : word.substr(0, colon + 1) + std::string(blank);
    }

    /// `Bearer`, `Basic`: what follows it is the secret.
    std::string header_value(const std::string& word) {
        const auto low = lower(word);
        if (low == "bearer" || low == "basic" || low == "token" || low == "digest") {
            expected_ = what::header;
            return word;
        }
        return std::string(blank);
    }

    std::optional<std::string> option_of_program(const std::string& word) {
        for (const auto& known : telling_options) {
            if (!word.starts_with(known.option) || !is_program(program_, known.program)) {
                continue;
            }
            if (word.size() == known.option.size()) {
                if (known.apart) {
                    expected_ = known.after_colon ? what::login : what::secret;
                }
                return word;
            }
            if (known.glued) {
                return known.after_colon ? after_colon(word, known.option.size())
                                         : std::string(known.option) + std::string(blank);
            }
        }
        return std::nullopt;
    }

    void note_program(const std::string& word) {
        for (const auto& known : telling_options) {
            if (is_program(word, known.program)) {
                program_ = word;
            }
        }
    }

    std::string with_blanks(std::string word) {
        const auto equals = word.find('=');
        const auto first_blank = word.find_first_of(blanks);
        if (equals < first_blank && speaks_of_a_secret(std::string_view(word).substr(0, equals))) {
            // A value with blanks, unless it ends before them: then this is the beginning of a
            // script.
            const auto value = std::string_view(word).substr(equals + 1);
            const bool quoted = value[0] == '"' || value[0] == '\'';
            const bool ends =
                value.starts_with(blank) || (quoted && value.find(value[0], 1) < value.size() - 1);
            if (word[0] == '-' || !ends) {
                return word.substr(0, equals + 1) + std::string(blank);
            }
        }
        const auto colon = word.find(':');
        if (colon < first_blank) {
            const auto from = begin_of_name(word, colon);
            if (is_secret_header(std::string_view(word).substr(from, colon - from), true)) {
                return word.substr(0, colon + 1) + " " + std::string(blank);
            }
        }
        return text(word, depth_ + 1);
    }

    std::string single(std::string word) {
        blank_assignments(word);
        blank_fields(word);
        const auto colon = word.find(':');
        if (colon != std::string::npos) {
            const auto from = begin_of_name(word, colon);
            const bool last = colon + 1 == word.size();
            if (is_secret_header(std::string_view(word).substr(from, colon - from), last)) {
                expected_ = last ? what::header : what::nothing;
                return last ? word : word.substr(0, colon + 1) + std::string(blank);
            }
        }
        if (word[0] == '-' && word.find('=') == std::string::npos && speaks_of_a_secret(word)) {
            expected_ = what::secret;
        }
        return word;
    }

    /// `name=value`, also within a query, where the next parameter begins at `&`.
    static void blank_assignments(std::string& word) {
        for (auto at = word.find('='); at != std::string::npos; at = word.find('=', at + 1)) {
            const auto from = begin_of_name(word, at);
            if (!speaks_of_a_secret(std::string_view(word).substr(from, at - from))) {
                continue;
            }
            const bool in_query = from > 0 && (word[from - 1] == '?' || word[from - 1] == '&' ||
                                               word[from - 1] == '#');
            const auto end =
                in_query ? std::min(word.find_first_of("&#", at), word.size()) : word.size();
            word.replace(at + 1, end - at - 1, blank);
        }
    }

    /// `{"name":"value"}`
    void blank_fields(std::string& word) {
        for (auto at = word.find("\":"); at != std::string::npos; at = word.find("\":", at + 1)) {
            const auto from = begin_of_name(word, at);
            if (!speaks_of_a_secret(std::string_view(word).substr(from, at - from))) {
                continue;
            }
            if (at + 2 == word.size()) {
                expected_ = what::secret;
            } else {
                word.replace(at + 2, std::string::npos, blank);
            }
            return;
        }
    }

    std::string program_;
    what expected_ = what::nothing;
    int depth_ = 0;
};

// --- URLs of stores ------------------------------------------------------------------------------

/// Known options whose values may be shown.
constexpr std::array<std::string_view, 14> harmless{"create",
                                                    "synchronous",
                                                    "sslmode",
                                                    "prefix",
                                                    "db",
                                                    "guarantee",
                                                    "max_ttl",
                                                    "ca",
                                                    "cert",
                                                    "sni",
                                                    "hash",
                                                    "schema",
                                                    "connect_timeout",
                                                    "target_session_attrs"};

bool has_scheme(std::string_view text) {
    const auto colon = text.find(':');
    return colon != npos && colon > 0 &&
           std::all_of(
               text.begin(), text.begin() + static_cast<std::ptrdiff_t>(colon), [](char letter) {
                   return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '+';
               });
}

bool names_a_file(std::string_view text) {
    return text.starts_with("sqlite:") || text.starts_with("memory:");
}

bool is_redis(std::string_view url) {
    const auto scheme = lower(url.substr(0, url.find(':')));
    return scheme == "redis" || scheme == "rediss";
}

/// The hosts of a URL without a login: what stands for a port and is no number may be a password
/// whose @ was forgotten.
std::string without_odd_ports(std::string_view hosts) {
    std::string shown;
    while (!hosts.empty()) {
        const auto end = std::min(hosts.find(','), hosts.size());
        const auto host = hosts.substr(0, end);
        const auto colon = host.find(':', host.starts_with('[') ? host.find(']') : 0);
        const auto port = host.substr(std::min(colon, host.size()));
        const bool plain = port.empty() || std::all_of(port.begin() + 1, port.end(), is_digit);
        shown += plain ? host : host.substr(0, colon + 1);
        shown += plain ? std::string_view{} : blank;
        shown += hosts.substr(end, 1);
        hosts.remove_prefix(std::min(end + 1, hosts.size()));
    }
    return shown;
}

/// Where the options of a URL begin, whose login begins there: at a `?`, unless that is one of the
/// password, which people write without encoding it.
std::size_t begin_of_options(std::string_view url, std::size_t login) {
    const auto mark = url.find('?');
    const auto sign = url.rfind('@');
    if (mark == npos || sign == npos || sign < mark || url.substr(0, mark).rfind('@') != npos) {
        return mark;
    }
    const auto hosts = url.substr(login, std::min(url.find('/', login), mark) - login);
    const bool options = url.substr(mark, sign - mark).find('=') != npos;
    return options && without_odd_ports(hosts) == hosts ? mark : url.find('?', sign);
}

/// Also without `//`, and with a password of digits before a slash: whoever wrote a store's URL
/// wrongly is told so, and not with the password in it.
std::string without_login(std::string_view head, std::size_t login) {
    const bool slashes = head.substr(0, login).ends_with("//");
    const auto sign = head.rfind('@');
    if (sign == npos || sign < login) {
        if (!slashes && head.find('=') != npos) {
            return std::string(head.substr(0, login)) + std::string(blank);
        }
        const auto end = std::min(head.find('/', login), head.size());
        return std::string(head.substr(0, login)) +
               without_odd_ports(head.substr(login, end - login)) + std::string(head.substr(end));
    }
    const auto colon = head.find(':', login);
    if (colon < sign) {
        return colon + 1 == sign ? std::string(head)
                                 : std::string(head.substr(0, colon + 1)) + std::string(blank) +
                                       std::string(head.substr(sign));
    }
    // A user alone says nothing to Redis; and without slashes it is not certain what is the user.
    return slashes && !is_redis(head) ? std::string(head)
                                      : std::string(head.substr(0, login)) + std::string(blank) +
                                            std::string(head.substr(sign));
}

std::string without_unknown_options(std::string_view options) {
    std::string shown;
    while (!options.empty()) {
        const auto end = std::min(options.find('&'), options.size());
        const auto option = options.substr(0, end);
        const auto equals = option.find('=');
        const auto name = option.substr(0, equals);
        const bool plain = std::find(harmless.begin(), harmless.end(), name) != harmless.end();
        if (equals != npos) {
            shown += name;
            shown += "=";
            shown += plain ? option.substr(equals + 1) : blank;
        } else {
            shown += plain || option.empty() ? option : blank;
        }
        if (end < options.size()) {
            shown += '&';
        }
        options.remove_prefix(std::min(end + 1, options.size()));
    }
    return shown;
}

}  // namespace

bool speaks_of_a_secret(std::string_view name) {
    auto low = lower(name);
    // A file or stdin that the secret comes from is none.
    if (low.ends_with("file") || low.ends_with("stdin")) {
        return false;
    }
    constexpr std::array<std::string_view, 22> parts{
        "passw",      "passphr",    "passin",     "passout",     "pwd",         "secret",
        "token",      "credential", "apikey",     "api-key",     "api_key",     "accesskey",
        "access-key", "access_key", "privatekey", "private-key", "private_key", "authkey",
        "auth-key",   "auth_key",   "signature",  "bearer"};
    if (std::any_of(parts.begin(), parts.end(), [&](auto part) {
            return low.find(part) != std::string::npos;
        })) {
        return true;
    }
    low.erase(0, std::min(low.find_first_not_of('-'), low.size()));
    return low == "pass" || low == "pw" || low == "sig" || low == "requirepass";
}

std::string redacted_url(std::string_view url) {
    if (!has_scheme(url)) {
        // Such as a connection string of another kind.
        const bool suspicious = url.find_first_of("@=") != npos;
        return suspicious ? std::string(blank) : std::string(url);
    }
    const auto slashes = url.find("://");
    const auto login = slashes == url.find(':') ? slashes + 3 : url.find(':') + 1;
    const bool file = names_a_file(url);
    const auto mark = file ? url.find('?') : begin_of_options(url, login);
    const auto head = url.substr(0, mark);
    auto shown = file ? std::string(head) : without_login(head, login);
    if (mark != npos) {
        shown += "?" + without_unknown_options(url.substr(mark + 1));
    }
    return shown;
}

std::vector<std::string> redacted_words(std::span<const std::string> words) {
    command_reader reader;
    std::vector<std::string> shown;
    shown.reserve(words.size());
    for (const auto& word : words) {
        shown.push_back(reader.read(word));
    }
    return shown;
}

std::string redacted_text(std::string_view command) {
    return command_reader::text(command, 0);
}

}  // namespace dibs::core
