//! Sends requests to object stores and web servers. It tells the user about servers that do not answer, gives up at
//! once if a connection is refused, sends credentials to no other host, and bounds the answers.

use super::answer::{BoundedBody, NOTICE, has_short_tags, notify};
use super::border;
use super::refusal::RequestRefusal;
use bytes::Bytes;
use futures::StreamExt;
use object_store::client::{
    ClientConfigKey, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};
use object_store::{ClientOptions, Result as StoreResult};
use std::io::ErrorKind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Maximum time of one try of a request until the answer begins, and between parts of the answer. The `object_store`
/// crate has the same default.
const TRY: Duration = Duration::from_secs(30);
/// Maximum bytes of a response that is parsed, such as a list of objects. A page of a list has at most 1,000 names of
/// at most 1,024 bytes.
const MAX_ANSWER: u64 = 8 << 20;
/// Maximum bytes of all pages of a list.
const MAX_LIST: u64 = 256 << 20;

/// Opens connections for an object store.
#[derive(Debug)]
pub(super) struct Connector {
    /// Whether requests carry credentials, which must not reach another host.
    pub has_secrets: bool,
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> StoreResult<HttpClient> {
        let client = client(options, self.has_secrets)?;
        Ok(HttpClient::new(Requests { client, listed: AtomicU64::new(0) }))
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
        .read_timeout(time_of_try(time(ClientConfigKey::Timeout, TRY), limit))
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

/// Returns the maximum time of one try of a request, given the configured time and the deadline of all tries. Sending
/// counts, so that a longer deadline must leave more time for uploads over slow networks.
fn time_of_try(configured: Duration, deadline: Duration) -> Duration {
    let time = if configured == TRY { TRY.max(deadline / 4) } else { configured };
    time.min(deadline)
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
            attempt.error(RequestRefusal::Redirect(host))
        }
    }
}

/// Sends requests and watches over the answers.
#[derive(Debug)]
struct Requests {
    client: reqwest::Client,
    /// Bytes of the pages of the list that began last.
    listed: AtomicU64,
}

#[async_trait::async_trait]
impl HttpService for Requests {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let host = request.uri().authority().map_or("the server", |authority| {
            authority.as_str().rsplit('@').next().unwrap_or_default() // without user name and password
        });
        let host = host.to_owned();
        let query = request.uri().query().unwrap_or_default().to_owned();
        let is_parsed = is_parsed(request.method().as_str(), &query);
        let range = request.headers().get("range").and_then(|range| bytes_of_range(range.to_str().ok()?));
        let response =
            watched(&host, self.client.call(request)).await.map_err(|error| refused(error, &host))?;
        let (parts, body) = response.into_parts();
        border::note_status(parts.status.as_u16());
        if !is_parsed && parts.status.is_success() {
            // A server that ignores the range answers 200 with the whole object, of which only the range is then read.
            let is_part = parts.status.as_u16() == 206;
            let most = range.filter(|_| is_part).unwrap_or(u64::MAX);
            let length = parts.headers.get("content-length").and_then(|length| length.to_str().ok());
            if length.is_some_and(|length| length.parse().is_ok_and(|length: u64| length > most)) {
                return Err(HttpError::new(HttpErrorKind::Decode, RequestRefusal::Answer(host)));
            }
            let body = HttpResponseBody::new(BoundedBody::new(body, host, most));
            return Ok(HttpResponse::from_parts(parts, body));
        }
        let answer = collected(body, &host).await?;
        match answer {
            Some(answer)
                if has_short_tags(&answer) && self.list_may_continue(&query, answer.len() as u64) =>
            {
                Ok(HttpResponse::from_parts(parts, Bytes::from(answer).into()))
            }
            _ if parts.status.is_success() => {
                Err(HttpError::new(HttpErrorKind::Decode, RequestRefusal::Answer(host)))
            }
            // Such as the error page of a proxy: its status decides about retries.
            _ => Ok(HttpResponse::from_parts(parts, Bytes::new().into())),
        }
    }
}

impl Requests {
    /// Returns whether the pages of a list are still short enough in all. A server may send pages without end.
    fn list_may_continue(&self, query: &str, bytes: u64) -> bool {
        let continues = |part: &str| part.starts_with("continuation-token=") || part.starts_with("marker=");
        let is_list = |part: &str| part.starts_with("list-type=") || part == "comp=list";
        if query.split('&').any(continues) {
            return self.listed.fetch_add(bytes, Ordering::Relaxed) <= MAX_LIST;
        }
        if query.split('&').any(is_list) {
            self.listed.store(bytes, Ordering::Relaxed);
        }
        true
    }
}

/// Receives an answer that is parsed. Returns `None` if it is too long.
async fn collected(body: HttpResponseBody, host: &str) -> Result<Option<Vec<u8>>, HttpError> {
    let body = BoundedBody::new(body, host.to_owned(), u64::MAX);
    let mut chunks = HttpResponseBody::new(body).bytes_stream();
    let mut answer = Vec::new();
    while let Some(chunk) = chunks.next().await {
        answer.extend_from_slice(&chunk?);
        if answer.len() as u64 > MAX_ANSWER {
            return Ok(None);
        }
    }
    Ok(Some(answer))
}

/// Returns the number of bytes of a range such as `bytes=0-99`, if its end is given.
fn bytes_of_range(range: &str) -> Option<u64> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    last.checked_sub(first)?.checked_add(1)
}

/// Returns whether the answer to a request is parsed. Only the contents of objects are not.
fn is_parsed(method: &str, query: &str) -> bool {
    let is_list = |part: &str| {
        ["list-type", "comp", "restype", "uploads", "session"].iter().any(|key| part.starts_with(key))
    };
    method != "GET" || query.split('&').any(is_list)
}

/// Converts errors that a retry cannot mend, with their cause.
fn refused(error: HttpError, host: &str) -> HttpError {
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        if let Some(system) = cause.downcast_ref::<std::io::Error>()
            && system.kind() == ErrorKind::ConnectionRefused
        {
            return HttpError::new(HttpErrorKind::Unknown, RequestRefusal::Connection(host.to_owned()));
        }
        if is_unknown_host(cause) {
            return HttpError::new(HttpErrorKind::Unknown, RequestRefusal::Name(host.to_owned()));
        }
        if let Some(RequestRefusal::Redirect(other)) = cause.downcast_ref::<RequestRefusal>() {
            return HttpError::new(HttpErrorKind::Unknown, RequestRefusal::Redirect(other.clone()));
        }
        source = cause.source();
    }
    error
}

/// Checks whether an error says that the name of a host has no address. A failure of the name server itself may be over
/// in a moment.
fn is_unknown_host(cause: &(dyn std::error::Error + 'static)) -> bool {
    let text = cause.to_string();
    cause.is::<std::io::Error>()
        && text.contains("failed to lookup address information")
        && !text.contains("Temporary failure")
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
    fn a_longer_deadline_gives_a_try_more_time() {
        let seconds = Duration::from_secs;
        for (configured, deadline, expected) in
            [(30, 120, 30), (30, 600, 150), (30, 20, 20), (5, 600, 5), (60, 120, 60), (60, 40, 40)]
        {
            let time = time_of_try(seconds(configured), seconds(deadline));
            assert_eq!(time, seconds(expected), "{configured} s of {deadline} s");
        }
    }

    #[test]
    fn ranges_have_a_number_of_bytes_if_their_end_is_given() {
        assert_eq!(bytes_of_range("bytes=10-19"), Some(10));
        assert_eq!(bytes_of_range("bytes=0-18446744073709551615"), None);
        for open in ["bytes=10-", "bytes=-5", "bytes=9-3", "lines=1-2"] {
            assert_eq!(bytes_of_range(open), None, "{open}");
        }
    }

    #[test]
    fn only_a_name_without_an_address_is_an_unknown_host() {
        for (text, is_unknown) in
            [("Name or service not known", true), ("Temporary failure in name resolution", false)]
        {
            let error = std::io::Error::other(format!("failed to lookup address information: {text}"));
            assert_eq!(is_unknown_host(&error), is_unknown, "{text}");
        }
    }

    #[test]
    fn a_list_ends() {
        let requests = Requests { client: reqwest::Client::new(), listed: AtomicU64::new(0) };
        let page = "list-type=2&prefix=a&continuation-token=b";
        assert!(requests.list_may_continue("list-type=2&prefix=a", MAX_LIST));
        assert!(requests.list_may_continue(page, 1) && !requests.list_may_continue(page, 1));
        assert!(requests.list_may_continue("list-type=2&prefix=a", 1) && requests.list_may_continue(page, 1));
    }
}
