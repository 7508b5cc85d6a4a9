//! Parses cluster addresses, and checks which addresses may be bound without encryption.

use planetree_base::error::{Error, Result};
use std::borrow::Cow;
use std::net::{IpAddr, ToSocketAddrs};

/// The value of `--cluster`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// `df://host:port`: a running scheduler.
    Scheduler {
        /// Host name or IP address.
        host: String,
        /// Port number.
        port: u16,
        /// Tuning options given in the address.
        usage: Usage,
    },
    /// `local:N`: N executors started on this machine.
    Local {
        /// Number of executors.
        executors: usize,
        /// Tuning options given in the address.
        usage: Usage,
    },
}

/// Tuning options of an address, such as `?shares=8&merge=0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Number of shares, which are ranges of row groups that one executor works on. `None` means one per executor.
    pub shares: Option<usize>,
    /// Number of tasks that merge the results of shares on executors, or 0 to merge on the driver only. `None` means
    /// that the number depends on the number of shares.
    pub merge: Option<usize>,
    /// Number of requests that a level of a tree is split into, so that executors compute the reply to one request
    /// while the reply to another is in transit. `None` means one.
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

    /// Returns the number of merge tasks for a number of shares.
    pub(crate) fn mergers(&self, shares: usize) -> usize {
        /// Minimum number of shares at which merge tasks save the driver more time than their additional stage costs;
        /// see docs/scale.md.
        const MANY: usize = 4;
        match self.merge {
            Some(mergers) => mergers,
            None if shares < MANY => 0,
            None => square_root(shares),
        }
    }

    /// Returns the number of merge tasks for streaming histograms. The driver must not receive more for several shares
    /// than for one, so they are merged even if there are few shares.
    pub(crate) fn streaming_mergers(&self, shares: usize) -> usize {
        match self.merge {
            Some(mergers) => mergers,
            None if shares < 2 => 0,
            None => square_root(shares),
        }
    }
}

fn square_root(shares: usize) -> usize {
    (shares as f64).sqrt().ceil() as usize
}

/// Default port of the scheduler.
pub const PORT: u16 = 50050;

/// Maximum number of local executors.
const MOST_LOCAL: usize = 64;

/// Maximum number of merge tasks.
const MOST_MERGERS: usize = 1000;

/// Maximum number of requests per level.
pub(crate) const MOST_OVERLAP: usize = 8;

impl Address {
    /// Parses the value of `--cluster`.
    pub fn parse(text: &str) -> Result<Self> {
        let odd = |problem: &str| {
            Error::usage(
                format_args!("--cluster {text}: {problem}"),
                "use df://host:port for a scheduler, or local:2 for two executors on this machine",
            )
        };
        let keys = "options after the question mark are shares=N, merge=N and overlap=N, joined by &";
        if let Some(local) = text.strip_prefix("local:") {
            let (count, query) = local.split_once('?').unwrap_or((local, ""));
            let usage =
                Usage::parse(url::form_urlencoded::parse(query.as_bytes())).ok_or_else(|| odd(keys))?;
            return match count.parse() {
                Ok(executors) if (1..=MOST_LOCAL).contains(&executors) => {
                    Ok(Address::Local { executors, usage })
                }
                _ => Err(odd("the number of executors must be from 1 to 64")),
            };
        }
        let url = url::Url::parse(text).map_err(|_| odd("not an address"))?;
        if url.scheme() != "df" || !matches!(url.path(), "" | "/") {
            return Err(odd("not the address of a scheduler"));
        }
        let host =
            url.host_str().filter(|host| !host.is_empty()).ok_or_else(|| odd("the host is missing"))?;
        let usage = Usage::parse(url.query_pairs()).ok_or_else(|| odd(keys))?;
        Ok(Address::Scheduler { host: host.to_owned(), port: url.port().unwrap_or(PORT), usage })
    }

    /// Returns the tuning options.
    pub fn usage(&self) -> Usage {
        match self {
            Address::Scheduler { usage, .. } | Address::Local { usage, .. } => *usage,
        }
    }

    /// Returns whether all processes of the cluster are on this machine.
    pub(crate) fn is_here(&self) -> bool {
        match self {
            Address::Local { .. } => true,
            Address::Scheduler { host, .. } => is_loopback(host),
        }
    }
}

/// Returns whether a host is a loopback address, or a name that resolves only to such addresses.
pub(crate) fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    match host.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => match (host, 0u16).to_socket_addrs() {
            Ok(mut addresses) => addresses.all(|address| address.ip().is_loopback()),
            Err(_) => false,
        },
    }
}

/// Returns an error if a public address would be bound without encryption and the user has not allowed it.
pub(crate) fn check_bind(host: &str, is_allowed: bool) -> Result<()> {
    if is_loopback(host) || is_allowed {
        return Ok(());
    }
    Err(Error::usage(
        format_args!(
            "--bind {host}: anyone who can reach this address could run plans and read files, unencrypted"
        ),
        "pass certificates with --tls-ca, --tls-certificate and --tls-key, or allow it with --plaintext on a network \
         used only by the cluster",
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
