//! Where a cluster is, and who may speak to it.

use planetree_base::error::{Error, Result};
use std::borrow::Cow;
use std::net::{IpAddr, ToSocketAddrs};

/// What `--cluster` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// `df://host:port`: a scheduler that is there already.
    Scheduler {
        /// Its host.
        host: String,
        /// Its port.
        port: u16,
        /// How it is used.
        usage: Usage,
    },
    /// `local:N`: so many executors are started on this machine.
    Local {
        /// How many.
        executors: usize,
        /// How they are used.
        usage: Usage,
    },
}

/// What may stand behind the question mark, for users who know better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Shares to divide the data into; one for each executor if not given.
    pub shares: Option<usize>,
    /// Tasks that merge answers before the driver does, 0 for none; by the number of shares if not given.
    pub merge: Option<usize>,
    /// Questions for a level, so that what one asks for is computed while the answers of another travel.
    pub overlap: Option<usize>,
}

impl Usage {
    fn parse<'a>(pairs: impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)>) -> Option<Self> {
        let mut usage = Usage::default();
        for (key, value) in pairs {
            match (&*key, value.parse().ok()?) {
                ("shares", count @ 1..) => usage.shares = Some(count),
                ("merge", count @ ..=MOST_MERGERS) => usage.merge = Some(count),
                ("overlap", count @ 1..=MOST_OVERLAP) => usage.overlap = Some(count),
                _ => return None,
            }
        }
        Some(usage)
    }

    /// Tasks that merge the answers of so many shares.
    pub fn mergers(&self, shares: usize) -> usize {
        /// From so many shares on, one more stage costs less than it saves the driver; see docs/scale.md.
        const MANY: usize = 4;
        match self.merge {
            Some(mergers) => mergers,
            None if shares < MANY => 0,
            None => (shares as f64).sqrt().ceil() as usize,
        }
    }
}

/// The scheduler's port unless told otherwise.
pub const PORT: u16 = 50050;

/// Executors that one machine is asked to start at most.
const MOST_LOCAL: usize = 64;

/// Tasks that merge at most.
const MOST_MERGERS: usize = 1000;

/// Questions for a level at most.
pub const MOST_OVERLAP: usize = 8;

impl Address {
    /// Reads what the user wrote.
    pub fn parse(text: &str) -> Result<Self> {
        let odd = |problem: &str| {
            Error::usage(
                format_args!("--cluster {text}: {problem}"),
                "write df://host:port for a scheduler, or local:2 for two executors on this machine",
            )
        };
        let keys = "behind the question mark there may be shares=N, merge=N and overlap=N, joined by &";
        if let Some(local) = text.strip_prefix("local:") {
            let (count, query) = local.split_once('?').unwrap_or((local, ""));
            let usage =
                Usage::parse(url::form_urlencoded::parse(query.as_bytes())).ok_or_else(|| odd(keys))?;
            return match count.parse() {
                Ok(executors) if (1..=MOST_LOCAL).contains(&executors) => {
                    Ok(Address::Local { executors, usage })
                }
                _ => Err(odd("it needs a number of executors from 1 to 64")),
            };
        }
        let url = url::Url::parse(text).map_err(|_| odd("this is no address"))?;
        if url.scheme() != "df" || !matches!(url.path(), "" | "/") {
            return Err(odd("this is no address of a scheduler"));
        }
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(|| odd("it names no host"))?;
        let usage = Usage::parse(url.query_pairs()).ok_or_else(|| odd(keys))?;
        Ok(Address::Scheduler { host: host.to_owned(), port: url.port().unwrap_or(PORT), usage })
    }

    /// How the cluster is used.
    pub fn usage(&self) -> Usage {
        match self {
            Address::Scheduler { usage, .. } | Address::Local { usage, .. } => *usage,
        }
    }

    /// Whether everything is on this machine.
    pub fn is_here(&self) -> bool {
        match self {
            Address::Local { .. } => true,
            Address::Scheduler { host, .. } => is_loopback(host),
        }
    }
}

/// Whether a host is this machine and nobody else's.
pub fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    match host.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => match (host, 0u16).to_socket_addrs() {
            Ok(mut addresses) => addresses.all(|address| address.ip().is_loopback()),
            Err(_) => false,
        },
    }
}

/// Refuses to listen where strangers could speak, unless they are asked for certificates or the user wants it so.
pub fn check_bind(host: &str, is_allowed: bool) -> Result<()> {
    if is_loopback(host) || is_allowed {
        return Ok(());
    }
    Err(Error::usage(
        format_args!(
            "--bind {host}: whoever reaches this address could run plans and read files, unencrypted"
        ),
        "name certificates with --tls-ca, --tls-certificate and --tls-key; or allow it with --plaintext in a network \
         that only the cluster is in",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_or_refused() {
        let scheduler = |host: &str, port, usage| Address::Scheduler { host: host.to_owned(), port, usage };
        let none = Usage::default();
        assert_eq!(Address::parse("df://node1:6000").unwrap(), scheduler("node1", 6000, none));
        assert_eq!(Address::parse("df://10.0.0.1").unwrap(), scheduler("10.0.0.1", PORT, none));
        let usage = Usage { shares: Some(8), merge: Some(0), overlap: Some(2) };
        let all = "shares=8&merge=0&overlap=2";
        assert_eq!(
            Address::parse(&format!("df://node1:6000?{all}")).unwrap(),
            scheduler("node1", 6000, usage)
        );
        assert_eq!(Address::parse("local:2").unwrap(), Address::Local { executors: 2, usage: none });
        assert_eq!(
            Address::parse(&format!("local:2?{all}")).unwrap(),
            Address::Local { executors: 2, usage }
        );
        for text in [
            "local:0",
            "local:x",
            "local:65",
            "http://node1",
            "node1:50050",
            "df://",
            "df://a:1/b",
            "df://a?x=1",
            "df://a?shares=0",
            "df://a?merge=1001",
            "local:2?overlap=0",
            "local:2?overlap=9",
            "local:2?merge",
        ] {
            let error = Address::parse(text).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{text}");
        }
    }

    #[test]
    fn many_answers_are_merged_by_few() {
        let mergers = [1, 3, 4, 9, 100].map(|shares| Usage::default().mergers(shares));
        assert_eq!(mergers, [0, 0, 2, 3, 10]);
        let told = Usage { merge: Some(0), ..Usage::default() };
        assert_eq!(told.mergers(100), 0);
    }

    #[test]
    fn only_this_machine_may_speak_in_plain_text() {
        for host in ["127.0.0.1", "127.8.8.8", "localhost", "::1", "[::1]"] {
            assert!(check_bind(host, false).is_ok(), "{host}");
        }
        for host in ["0.0.0.0", "10.0.0.1", "::", "192.168.1.1"] {
            assert_eq!(check_bind(host, false).unwrap_err().exit_code(), 2, "{host}");
            assert!(check_bind(host, true).is_ok());
        }
    }
}
