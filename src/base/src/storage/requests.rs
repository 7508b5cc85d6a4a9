//! Sends requests to object stores and web servers. It tells the user about servers that do not answer, gives up at
//! once if a connection is refused, sends credentials to no other host, and bounds the answers that are parsed.

use super::border;
use bytes::Bytes;
use futures::StreamExt;
use object_store::client::{
    ClientConfigKey, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpService,
};
use object_store::{ClientOptions, Result as StoreResult};
use std::fmt;
use std::io::ErrorKind;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Time without an answer after which the user is told.
const NOTICE: Duration = Duration::from_secs(10);
/// Maximum time of one try of a request, with the body of the response.
const TRY: Duration = Duration::from_secs(30);
/// Maximum bytes of a response that is parsed, such as a list of objects. A page of a list has at most 1,000 names of
/// at most 1,024 bytes.
const MAX_ANSWER: usize = 8 << 20;
/// Maximum bytes of an XML tag. The time to parse a tag grows with the square of the number of its attributes.
const MAX_TAG: usize = 1 << 10;

/// A request that failed and would fail again.
#[derive(Debug)]
pub(super) enum Refusal {
    /// No server listens at this address.
    Connection(String),
    /// The server redirects to this other host.
    Redirect(String),
    /// The server at this address sent an answer that no store sends.
    Answer(String),
}

/// The first words of each refusal. The `object_store` crate wraps errors, so their texts are searched.
const REFUSALS: [&str; 3] =
    ["connection refused: ", "refused redirect to another host: ", "refused answer from "];

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Connection(host) => write!(f, "{}{host}", REFUSALS[0]),
            Refusal::Redirect(host) => write!(f, "{}{host}", REFUSALS[1]),
            Refusal::Answer(host) => write!(f, "{}{host}", REFUSALS[2]),
        }
    }
}

impl std::error::Error for Refusal {}

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
        1 => (
            format!("{text}, because the request carries credentials"),
            "check the endpoint and the region of the bucket (AWS_REGION)",
        ),
        _ => (format!("{text}: it is too large, or not an answer of an object store"), "check the endpoint"),
    })
}

/// Opens connections for an object store.
#[derive(Debug)]
pub(super) struct Connector {
    /// Whether requests carry credentials, which must not reach another host.
    pub has_secrets: bool,
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> StoreResult<HttpClient> {
        Ok(HttpClient::new(Requests { client: client(options, self.has_secrets)? }))
    }
}

/// Builds a client as the `object_store` crate does, except for redirects.
fn client(options: &ClientOptions, has_secrets: bool) -> StoreResult<reqwest::Client> {
    let failed =
        |error: reqwest::Error| object_store::Error::Generic { store: "HTTP client", source: error.into() };
    let value = |key: ClientConfigKey| options.get_config_value(&key);
    let is_set = |key: ClientConfigKey| value(key).is_some_and(|text| text == "true");
    let time = |key: ClientConfigKey, otherwise: Duration| {
        value(key).and_then(|text| humantime::parse_duration(&text).ok()).unwrap_or(otherwise)
    };
    let limit = border::deadline();
    let mut builder = reqwest::Client::builder()
        .user_agent(value(ClientConfigKey::UserAgent).unwrap_or_else(|| "planetree".to_owned()))
        .timeout(time(ClientConfigKey::Timeout, TRY).min(limit))
        .connect_timeout(time(ClientConfigKey::ConnectTimeout, Duration::from_secs(5)).min(limit))
        .https_only(!is_set(ClientConfigKey::AllowHttp));
    if has_secrets {
        builder = builder.redirect(reqwest::redirect::Policy::custom(same_host));
    }
    if let Some(headers) = options.get_default_headers() {
        builder = builder.default_headers(headers.clone());
    }
    if let Some(proxy) = value(ClientConfigKey::ProxyUrl) {
        let mut proxy = reqwest::Proxy::all(proxy).map_err(failed)?;
        if let Some(excluded) = value(ClientConfigKey::ProxyExcludes) {
            proxy = proxy.no_proxy(reqwest::NoProxy::from_string(&excluded));
        }
        builder = builder.proxy(proxy);
        if let Some(certificate) = value(ClientConfigKey::ProxyCaCertificate) {
            let certificate = reqwest::Certificate::from_pem(certificate.as_bytes()).map_err(failed)?;
            builder = builder.add_root_certificate(certificate);
        }
    }
    if is_set(ClientConfigKey::Http1Only) {
        builder = builder.http1_only();
    }
    if is_set(ClientConfigKey::Http2Only) {
        builder = builder.http2_prior_knowledge();
    }
    if is_set(ClientConfigKey::AllowInvalidCertificates) {
        builder = builder.danger_accept_invalid_certs(true);
    }
    builder.build().map_err(failed)
}

/// Follows redirects only to the host that was asked. Signatures and security tokens are in headers that the HTTP
/// client does not know to be secret.
fn same_host(attempt: reqwest::redirect::Attempt<'_>) -> reqwest::redirect::Action {
    let place = |url: &reqwest::Url| {
        (url.scheme().to_owned(), url.host_str().map(str::to_owned), url.port_or_known_default())
    };
    let is_same = attempt.previous().first().is_some_and(|first| place(first) == place(attempt.url()));
    match is_same {
        true if attempt.previous().len() < 5 => attempt.follow(),
        true => attempt.stop(),
        false => {
            let host = attempt.url().host_str().unwrap_or("(none)").to_owned();
            attempt.error(Refusal::Redirect(host))
        }
    }
}

/// Sends requests and watches over the answers.
#[derive(Debug)]
struct Requests {
    client: reqwest::Client,
}

#[async_trait::async_trait]
impl HttpService for Requests {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let host = request.uri().authority().map_or("the server", |authority| {
            authority.as_str().rsplit('@').next().unwrap_or_default() // without user name and password
        });
        let host = host.to_owned();
        let is_parsed = is_parsed(request.method().as_str(), request.uri().query().unwrap_or_default());
        let response =
            watched(&host, self.client.call(request)).await.map_err(|error| refused(error, &host))?;
        if !is_parsed && response.status().is_success() {
            return Ok(response);
        }
        let (parts, body) = response.into_parts();
        let mut chunks = body.bytes_stream();
        let mut answer = Vec::new();
        while let Some(chunk) = watched(&host, chunks.next()).await {
            answer.extend_from_slice(&chunk?);
            if answer.len() > MAX_ANSWER {
                break;
            }
        }
        if answer.len() > MAX_ANSWER || !has_short_tags(&answer) {
            if parts.status.is_success() {
                return Err(HttpError::new(HttpErrorKind::Decode, Refusal::Answer(host)));
            }
            answer.clear(); // such as the error page of a proxy: its status decides about retries
        }
        Ok(HttpResponse::from_parts(parts, Bytes::from(answer).into()))
    }
}

/// Returns whether the answer to a request is parsed. Only the contents of objects are not.
fn is_parsed(method: &str, query: &str) -> bool {
    let is_list = |part: &str| {
        ["list-type", "comp", "restype", "uploads", "session"].iter().any(|key| part.starts_with(key))
    };
    method != "GET" || query.split('&').any(is_list)
}

/// Returns whether all XML tags of a text are short. A `>` between quotes does not end a tag.
fn has_short_tags(text: &[u8]) -> bool {
    let (mut open, mut quote) = (None, None);
    for (place, byte) in text.iter().copied().enumerate() {
        let Some(start) = open else {
            if byte == b'<' {
                open = Some(place);
            }
            continue;
        };
        if place - start > MAX_TAG {
            return false;
        }
        match quote {
            Some(end) if byte == end => quote = None,
            Some(_) => {}
            None if byte == b'>' => open = None,
            None if byte == b'\'' || byte == b'"' => quote = Some(byte),
            None => {}
        }
    }
    true
}

/// Converts errors that a retry cannot mend, with their cause.
fn refused(error: HttpError, host: &str) -> HttpError {
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        if let Some(system) = cause.downcast_ref::<std::io::Error>()
            && system.kind() == ErrorKind::ConnectionRefused
        {
            return HttpError::new(HttpErrorKind::Unknown, Refusal::Connection(host.to_owned()));
        }
        if let Some(Refusal::Redirect(other)) = cause.downcast_ref::<Refusal>() {
            return HttpError::new(HttpErrorKind::Unknown, Refusal::Redirect(other.clone()));
        }
        source = cause.source();
    }
    error
}

/// Waits for an answer, and tells the user if there is none for a while.
async fn watched<T>(host: &str, answer: impl Future<Output = T>) -> T {
    let mut answer = std::pin::pin!(answer);
    loop {
        tokio::select! {
            answer = &mut answer => return answer,
            () = tokio::time::sleep(NOTICE) => notify(host),
        }
    }
}

/// Prints a notice, unless one was printed a moment ago for another request.
fn notify(host: &str) {
    static LAST: Mutex<Option<Instant>> = Mutex::new(None);
    let mut last = LAST.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if last.is_none_or(|last| last.elapsed() >= NOTICE - Duration::from_secs(1)) {
        *last = Some(Instant::now());
        tracing::warn!("no answer from {host} yet");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_contents_of_objects_are_not_parsed() {
        assert!(!is_parsed("GET", "") && !is_parsed("GET", "versionId=3"));
        assert!(is_parsed("GET", "list-type=2&prefix=a") && is_parsed("GET", "prefix=a&comp=list"));
        assert!(is_parsed("POST", "uploadId=7") && is_parsed("DELETE", ""));
    }

    #[test]
    fn a_tag_of_many_attributes_is_refused() {
        assert!(has_short_tags(b"<a x='1'><b>text > text</b></a>"));
        let many = format!("<a {}/>", "x='1' ".repeat(1000));
        assert!(!has_short_tags(many.as_bytes()));
        let quoted = format!("<a {}/>", "x='>' ".repeat(1000));
        assert!(!has_short_tags(quoted.as_bytes()), "the tag does not end between quotes");
        assert!(has_short_tags(&br#"<Key Owner="it's">it's</Key>"#.repeat(10_000)));
        assert!(has_short_tags(&b"x".repeat(1 << 20)), "long text is not a tag");
    }

    #[test]
    fn refusals_are_found_in_messages() {
        let message = format!(
            "Error performing GET http://h/b in 1ms - HTTP error: {}",
            Refusal::Connection("h:9".into())
        );
        assert_eq!(refusal_in(&message).unwrap().0, "connection refused: h:9");
        let message = format!("Generic S3 error: ({}) after 1 try", Refusal::Redirect("evil".into()));
        assert!(
            refusal_in(&message).unwrap().0.starts_with("refused redirect to another host: evil, because")
        );
        assert!(refusal_in("no such key").is_none());
    }
}
