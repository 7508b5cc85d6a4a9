//! Opens object stores, given a URL and the usual environment variables for credentials. The `object_store` crate
//! reads the secrets, which never appear in messages, log lines or `{:?}` output of planetree.

use super::border;
use super::location::Access;
use super::redact::{redacted_url, without_urls};
use super::refusal::refusal_in;
use super::requests::Connector;
use crate::error::{Error, Result};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::{ObjectStore, RetryConfig};
use std::sync::Arc;
use url::Url;

/// A kind of object store, with its URL schemes and the environment variables that hold its credentials.
struct Provider {
    schemes: &'static [&'static str],
    /// Alternative sets of environment variables. The credentials are complete if all variables of one set are
    /// defined.
    credentials: &'static [&'static [&'static str]],
    open: fn(&Url) -> object_store::Result<StoreHandles>,
}

/// A store, and a handle for multipart uploads if the store is writable.
type StoreHandles = (Arc<dyn ObjectStore>, Option<Arc<dyn MultipartStore>>);

/// An open store and a path within it.
pub(super) struct OpenStore {
    /// The object store or web server.
    pub store: Arc<dyn ObjectStore>,
    /// Handle for multipart uploads; `None` for web servers, which are read-only.
    pub uploads: Option<Arc<dyn MultipartStore>>,
    /// The path within the store.
    pub path: Path,
}

/// Maximum number of words of a store's error message that are shown.
const MESSAGE_WORDS: usize = 60;

const PROVIDERS: &[Provider] = &[
    Provider {
        schemes: &["s3", "s3a"],
        credentials: &[
            &["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"],
            &["AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN"],
            &["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"],
            &["AWS_CONTAINER_CREDENTIALS_FULL_URI"],
            &["AWS_SKIP_SIGNATURE"],
        ],
        open: open_s3,
    },
    Provider {
        schemes: &["gs"],
        credentials: &[
            &["GOOGLE_SERVICE_ACCOUNT"],
            &["GOOGLE_SERVICE_ACCOUNT_PATH"],
            &["GOOGLE_SERVICE_ACCOUNT_KEY"],
            &["GOOGLE_APPLICATION_CREDENTIALS"],
            &["GOOGLE_SKIP_SIGNATURE"],
        ],
        open: open_gcs,
    },
    Provider {
        schemes: &["az", "azure", "abfs", "abfss", "adl"],
        credentials: &[
            &["AZURE_STORAGE_ACCOUNT_KEY"],
            &["AZURE_STORAGE_ACCESS_KEY"],
            &["AZURE_STORAGE_SAS_KEY"],
            &["AZURE_STORAGE_SAS_TOKEN"],
            &["AZURE_STORAGE_CLIENT_ID", "AZURE_STORAGE_CLIENT_SECRET"],
            &["AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET"],
            &["AZURE_FEDERATED_TOKEN_FILE"],
            &["AZURE_STORAGE_USE_EMULATOR"],
            &["AZURE_SKIP_SIGNATURE"],
        ],
        open: open_azure,
    },
    Provider { schemes: &["http", "https"], credentials: &[&[]], open: open_http },
];

/// Opens the store that a URL refers to. Fails if the scheme is unknown or the credentials are missing.
pub(super) fn open(url: &Url, access: Access) -> Result<OpenStore> {
    let Some(provider) = PROVIDERS.iter().find(|provider| provider.schemes.contains(&url.scheme())) else {
        return Err(Error::usage(
            format_args!("{}: unknown URL scheme `{}:`", redacted_url(url), url.scheme()),
            "use a path, or a URL that starts with s3://, gs://, az://, http://, https:// or file://",
        ));
    };
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let explicit = provider.credentials.iter().any(|set| set.iter().all(is_set));
    if !explicit && access != Access::InstanceCredentials {
        let wanted: Vec<String> = provider.credentials.iter().take(2).map(|set| set.join(" and ")).collect();
        return Err(Error::usage(
            format_args!("{}: no credentials for this store", redacted_url(url)),
            format_args!(
                "set {}, or pass --instance-credentials to use the machine's metadata service",
                wanted.join(", or ")
            ),
        ));
    }
    let (store, uploads) = (provider.open)(url).map_err(|error| {
        Error::place(
            redacted_url(url),
            plain(&error).0,
            "check the URL and the store's environment variables",
        )
    })?;
    let path = Path::from_url_path(url.path())
        .map_err(|error| Error::usage(format_args!("{}: {error}", redacted_url(url)), "check the URL"))?;
    Ok(OpenStore { store, uploads, path })
}

/// Returns the cause and the remedy of a store's error. The headers and the body of the response are never included,
/// because they may contain secrets.
pub(super) fn plain(error: &object_store::Error) -> (String, &'static str) {
    use object_store::Error as E;
    let text = error.to_string();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if let Some(refusal) = refusal_in(&text) {
        refusal
    } else if let Some(start) = text.find(border::DEADLINE_PASSED) {
        (
            text[start..].lines().next().unwrap_or_default().to_owned(),
            "check the endpoint and the network, or raise --deadline",
        )
    } else if let Some(start) = text.find(border::DEADLINE_FAILURE) {
        (
            text[start..].lines().next().unwrap_or_default().to_owned(),
            "the server fails or is overloaded: try again later, or raise --deadline",
        )
    } else if matches!(error, E::NotFound { .. }) || says(&["NoSuchBucket", "404 Not Found"]) {
        ("there is no such object or bucket".to_owned(), "check the spelling of the bucket and the path")
    } else if matches!(error, E::PermissionDenied { .. } | E::Unauthenticated { .. })
        || says(&["403 Forbidden", "401 Unauthorized", "SignatureDoesNotMatch", "InvalidAccessKeyId"])
    {
        (
            "access denied with these credentials".to_owned(),
            "check the credentials in the environment variables and their permissions",
        )
    } else if matches!(error, E::NotSupported { .. } | E::NotImplemented { .. }) {
        ("operation not supported by this store".to_owned(), "use a local path or another object store")
    } else if says(&["dns error", "failed to lookup address"]) {
        (
            "the host name of the endpoint cannot be resolved".to_owned(),
            "check the spelling of the endpoint and the network",
        )
    } else if says(&["error sending request", "operation timed out"]) {
        (
            "the store did not respond after several retries".to_owned(),
            "check the endpoint and the network, then run the command again",
        )
    } else {
        (short_message(&text), "check the endpoint and the network, then run the command again")
    }
}

/// Returns the start of an error message, without URLs. The rest may be the body of a response, which can contain
/// secrets.
fn short_message(text: &str) -> String {
    let text = text.split(['\n', '<', '{']).next().unwrap_or_default();
    let words: Vec<&str> = text.split_whitespace().take(MESSAGE_WORDS).collect();
    without_urls(&words.join(" ")).trim_end_matches([':', ' ', '.']).to_owned()
}

const WITH_SECRETS: Connector = Connector { has_secrets: true };

fn retry_config() -> RetryConfig {
    RetryConfig { max_retries: 12, retry_timeout: border::deadline(), ..RetryConfig::default() }
}

fn open_s3(url: &Url) -> object_store::Result<StoreHandles> {
    let endpoint = std::env::var("AWS_ENDPOINT_URL_S3")
        .or_else(|_| std::env::var("AWS_ENDPOINT_URL"))
        .or_else(|_| std::env::var("AWS_ENDPOINT"))
        .unwrap_or_default();
    let mut builder = AmazonS3Builder::from_env()
        .with_url(url.as_str())
        .with_retry(retry_config())
        .with_http_connector(WITH_SECRETS);
    if endpoint.starts_with("http://") {
        builder = builder.with_allow_http(true); // the user chose an endpoint without TLS
    }
    Ok(writable(builder.build()?))
}

fn writable<S: ObjectStore + MultipartStore>(store: S) -> StoreHandles {
    let store = Arc::new(store);
    (store.clone(), Some(store))
}

fn open_gcs(url: &Url) -> object_store::Result<StoreHandles> {
    let builder = GoogleCloudStorageBuilder::from_env().with_url(url.as_str()).with_retry(retry_config());
    Ok(writable(builder.with_http_connector(WITH_SECRETS).build()?))
}

fn open_azure(url: &Url) -> object_store::Result<StoreHandles> {
    let mut builder = MicrosoftAzureBuilder::from_env()
        .with_url(url.as_str())
        .with_retry(retry_config())
        .with_http_connector(WITH_SECRETS);
    if std::env::var("AZURE_STORAGE_ENDPOINT").is_ok_and(|endpoint| endpoint.starts_with("http://")) {
        builder = builder.with_allow_http(true);
    }
    Ok(writable(builder.build()?))
}

fn open_http(url: &Url) -> object_store::Result<StoreHandles> {
    let mut root = url.clone();
    root.set_path("");
    root.set_fragment(None);
    let options = object_store::ClientOptions::new().with_allow_http(url.scheme() == "http");
    let builder =
        HttpBuilder::new().with_url(root.as_str()).with_client_options(options).with_retry(retry_config());
    // Web servers often redirect to other hosts. Credentials of a URL are in a header that the client then removes.
    let builder = builder.with_http_connector(Connector { has_secrets: false });
    Ok((Arc::new(builder.build()?), None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_ends_before_the_body_of_a_response() {
        assert_eq!(
            short_message(
                "Error performing GET http://me:sentinel@h/x?s=sentinel in 3s:\n<Error>sentinel</Error>"
            ),
            "Error performing GET (URL) in 3s"
        );
    }
}
