//! Bounds the answers of servers while they arrive: their length, the time that they take, and the XML in them.

use super::border;
use super::refusal::RequestRefusal;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use object_store::client::{HttpError, HttpErrorKind, HttpResponseBody};
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::time::{Sleep, sleep};

/// Time without an answer after which the user is told.
pub(super) const NOTICE: Duration = Duration::from_secs(10);
/// Maximum bytes of an XML tag. The time to parse a tag grows with the square of the number of its attributes.
const MAX_TAG: usize = 1 << 10;
/// Minimum mean bytes per second of an answer that takes longer than the deadline. A slower server might as well send
/// nothing.
const MIN_SPEED: u64 = 4 << 10;

/// The body of a response. It fails if it is longer than expected or comes too slowly, and tells the user if nothing
/// comes for a while.
pub(super) struct BoundedBody {
    body: HttpResponseBody,
    host: String,
    /// Maximum number of bytes.
    most: u64,
    received: u64,
    /// Time spent waiting for the server, not counting the current wait. The reader may pause as long as it wants.
    waited: Duration,
    /// When the current wait began.
    waiting_since: Option<Instant>,
    deadline: Duration,
    /// Ends when the server has been waited for for a while.
    silence: Pin<Box<Sleep>>,
}

impl BoundedBody {
    /// Watches over a body of at most `most` bytes.
    pub(super) fn new(body: HttpResponseBody, host: String, most: u64) -> Self {
        BoundedBody {
            body,
            host,
            most,
            received: 0,
            waited: Duration::ZERO,
            waiting_since: None,
            deadline: border::deadline(),
            silence: Box::pin(sleep(NOTICE)),
        }
    }

    /// Counts received bytes. Fails if there are too many, or too few for the time.
    fn receive(&mut self, bytes: u64) -> Result<(), HttpError> {
        self.received += bytes;
        if self.received > self.most {
            return Err(HttpError::new(HttpErrorKind::Decode, RequestRefusal::Answer(self.host.clone())));
        }
        if let Some(since) = self.waiting_since.take() {
            self.waited += since.elapsed();
        }
        if self.waited > self.deadline && self.received < MIN_SPEED * self.waited.as_secs() {
            let problem = border::deadline_passed(self.deadline);
            return Err(HttpError::new(HttpErrorKind::Timeout, std::io::Error::other(problem)));
        }
        Ok(())
    }

    /// Tells the user whenever nothing has come for a while.
    fn watch(&mut self, context: &mut Context<'_>) {
        if self.waiting_since.is_none() {
            self.waiting_since = Some(Instant::now());
            self.silence = Box::pin(sleep(NOTICE));
        }
        while self.silence.as_mut().poll(context).is_ready() {
            notify(&self.host);
            self.silence = Box::pin(sleep(NOTICE));
        }
    }
}

impl Body for BoundedBody {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        match &polled {
            Poll::Pending => self.watch(context),
            Poll::Ready(Some(Ok(frame))) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len) as u64;
                if let Err(error) = self.receive(bytes) {
                    return Poll::Ready(Some(Err(error)));
                }
            }
            Poll::Ready(_) => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Prints a notice, unless one was printed a moment ago for another request.
pub(super) fn notify(host: &str) {
    static LAST: Mutex<Option<Instant>> = Mutex::new(None);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if last.is_none_or(|last| last.elapsed() >= NOTICE - Duration::from_secs(1)) {
        *last = Some(Instant::now());
        tracing::warn!("no answer from {host} yet");
    }
}

/// Returns whether all XML tags of a text are short, and every `<` begins one. Stores send no comments, document types
/// and CDATA sections; in these, a quote would not mean what it means in a tag.
pub(super) fn has_short_tags(text: &[u8]) -> bool {
    let mut rest = text;
    while let Some(start) = memchr::memchr(b'<', rest) {
        rest = &rest[start..];
        let tag = &rest[..rest.len().min(MAX_TAG)];
        let length = match tag.get(1) {
            Some(b'!') => return false,
            Some(b'?') => memchr::memmem::find(tag, b"?>"),
            Some(b'/') => memchr::memchr(b'>', tag),
            _ => tag_end(tag),
        };
        match length {
            Some(length) => rest = &rest[length..],
            None => return tag.len() < MAX_TAG, // the parser reports a tag that is cut off
        }
    }
    true
}

/// Returns the position of the `>` that ends a tag. One between quotes does not.
fn tag_end(tag: &[u8]) -> Option<usize> {
    let mut quote = None;
    tag.iter().position(|byte| {
        match quote {
            Some(end) if end == *byte => quote = None,
            Some(_) => {}
            None if matches!(byte, b'\'' | b'"') => quote = Some(*byte),
            None => return *byte == b'>',
        }
        false
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_of_many_attributes_is_refused() {
        assert!(has_short_tags(b"<?xml version='1.0'?><a x='1'><b>text > text</b></a>"));
        let many = format!("<a {}/>", "x='1' ".repeat(1000));
        assert!(!has_short_tags(many.as_bytes()));
        let quoted = format!("<a {}/>", "x='>' ".repeat(1000));
        assert!(!has_short_tags(quoted.as_bytes()), "the tag does not end between quotes");
        assert!(has_short_tags(&br#"<Key Owner="it's">it's</Key>"#.repeat(10_000)));
        assert!(has_short_tags(&b"x".repeat(1 << 20)), "long text is not a tag");
        assert!(has_short_tags(&b"<a>".repeat(10_000)));
        assert!(has_short_tags(b"<a><b x='1"), "cut off");
    }

    #[test]
    fn attributes_are_not_hidden_behind_quotes_outside_of_tags() {
        // Read as a tag, each beginning would end at the last `>`, in a quoted value of the tag that follows it.
        for beginning in ["<!-- ' -->", "</b '>", "<?xml ' ?>", "<![CDATA[ ' ]]>", "<!DOCTYPE ' >"] {
            let hidden = format!("{beginning}<a y=\"' > \" {}/>", "x='1' ".repeat(1000));
            assert!(!has_short_tags(hidden.as_bytes()), "{beginning}");
        }
    }

    #[test]
    fn a_body_must_not_be_longer_or_slower_than_expected() {
        border::wait(async {
            let body = |most| BoundedBody::new(HttpResponseBody::from(Bytes::new()), "h".into(), most);
            let mut ranged = body(10);
            assert!(ranged.receive(10).is_ok() && ranged.receive(1).is_err());
            let mut slow = body(u64::MAX);
            slow.waited = 2 * slow.deadline;
            let enough = MIN_SPEED * 2 * slow.deadline.as_secs();
            assert!(slow.receive(enough + MIN_SPEED).is_ok(), "slow, but fast enough");
            slow.received = 0;
            let error = slow.receive(1).unwrap_err();
            assert_eq!(error.kind(), HttpErrorKind::Timeout);
        });
    }
}
