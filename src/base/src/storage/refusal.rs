//! Failures of requests that a retry cannot mend. The `object_store` crate wraps errors, so they are found by their texts.

use std::fmt;

/// Why a request failed that would fail again if it were repeated.
#[derive(Debug)]
pub(super) enum RequestRefusal {
    /// No server listens at this address.
    Connection(String),
    /// The name of this host has no address.
    Name(String),
    /// The server redirects to this other host.
    Redirect(String),
    /// The server at this address sent an answer that no store sends.
    Answer(String),
}

/// The first words of each refusal.
const REFUSALS: [&str; 4] =
    ["connection refused: ", "unknown host: ", "refused redirect to another host: ", "refused answer from "];

impl fmt::Display for RequestRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestRefusal::Connection(host) => write!(f, "{}{host}", REFUSALS[0]),
            RequestRefusal::Name(host) => write!(f, "{}{host}", REFUSALS[1]),
            RequestRefusal::Redirect(host) => write!(f, "{}{host}", REFUSALS[2]),
            RequestRefusal::Answer(host) => write!(f, "{}{host}", REFUSALS[3]),
        }
    }
}

impl std::error::Error for RequestRefusal {}

/// Returns the refusal that a message of the `object_store` crate contains, and what to do about it.
pub(super) fn refusal_in(message: &str) -> Option<(String, &'static str)> {
    let (start, kind) =
        REFUSALS.iter().enumerate().find_map(|(kind, words)| Some((message.find(words)?, kind)))?;
    let end = message[start + REFUSALS[kind].len()..].find([' ', '\n', ')', ',']);
    let text = match end {
        Some(end) => &message[start..start + REFUSALS[kind].len() + end],
        None => &message[start..],
    };
    Some(match kind {
        0 => (text.to_owned(), "start the server, or check the host and the port of the endpoint"),
        1 => (text.to_owned(), "check the spelling of the host, and the network"),
        2 => (
            format!("{text}, because the request carries credentials"),
            "check the endpoint and the region of the bucket (AWS_REGION)",
        ),
        _ => (format!("{text}: it is too large, or not an answer of an object store"), "check the endpoint"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_found_in_messages() {
        let message = format!(
            "Error performing GET http://h/b in 1ms - HTTP error: {}",
            RequestRefusal::Connection("h:9".into())
        );
        assert_eq!(refusal_in(&message).unwrap().0, "connection refused: h:9");
        let message = format!("Generic S3 error: ({}) after 1 try", RequestRefusal::Redirect("evil".into()));
        assert!(
            refusal_in(&message).unwrap().0.starts_with("refused redirect to another host: evil, because")
        );
        assert!(refusal_in("no such key").is_none());
        let message = format!("HTTP error: {}", RequestRefusal::Name("h.example".into()));
        assert_eq!(refusal_in(&message).unwrap().0, "unknown host: h.example");
    }
}
