//! Where a cluster is, and who may speak to it.

use crate::error::{Error, Result};
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
        /// Shares to divide the data into; one for each executor if not given.
        shares: Option<usize>,
    },
    /// `local:N`: so many executors are started on this machine.
    Local {
        /// How many.
        executors: usize,
    },
}

/// The scheduler's port unless told otherwise.
pub const PORT: u16 = 50050;

/// Executors that one machine is asked to start at most.
const MOST_LOCAL: usize = 64;

impl Address {
    /// Reads what the user wrote.
    pub fn parse(text: &str) -> Result<Self> {
        let odd = |problem: &str| {
            Error::usage(
                format_args!("--cluster {text}: {problem}"),
                "write df://host:port for a scheduler, or local:2 for two executors on this machine",
            )
        };
        if let Some(count) = text.strip_prefix("local:") {
            return match count.parse() {
                Ok(executors) if (1..=MOST_LOCAL).contains(&executors) => Ok(Address::Local { executors }),
                _ => Err(odd("it needs a number of executors from 1 to 64")),
            };
        }
        let url = url::Url::parse(text).map_err(|_| odd("this is no address"))?;
        if url.scheme() != "df" || !matches!(url.path(), "" | "/") {
            return Err(odd("this is no address of a scheduler"));
        }
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(|| odd("it names no host"))?;
        let mut shares = None;
        for (key, value) in url.query_pairs() {
            match (&*key, value.parse()) {
                ("shares", Ok(count)) if count > 0 => shares = Some(count),
                _ => return Err(odd("behind the question mark there may be shares=N")),
            }
        }
        Ok(Address::Scheduler { host: host.to_owned(), port: url.port().unwrap_or(PORT), shares })
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
        let scheduler = |host: &str, port, shares| Address::Scheduler { host: host.to_owned(), port, shares };
        assert_eq!(Address::parse("df://node1:6000").unwrap(), scheduler("node1", 6000, None));
        assert_eq!(Address::parse("df://10.0.0.1").unwrap(), scheduler("10.0.0.1", PORT, None));
        assert_eq!(Address::parse("df://node1:6000?shares=8").unwrap(), scheduler("node1", 6000, Some(8)));
        assert_eq!(Address::parse("local:2").unwrap(), Address::Local { executors: 2 });
        for text in [
            "local:0",
            "local:x",
            "local:65",
            "http://node1",
            "node1:50050",
            "df://",
            "df://a:1/b",
            "df://a?x=1",
        ] {
            let error = Address::parse(text).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{text}");
        }
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
