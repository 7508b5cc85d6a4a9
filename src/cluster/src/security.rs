//! Controls access to a cluster: mutual TLS with certificates signed by the cluster's authority, and a shared token.
//! The engine's servers do not support encryption, so they listen on a loopback address behind a TLS proxy that
//! requires client certificates.

use super::token::Token;
use ballista_core::extension::{EndpointOverrideFn, SessionConfigExt};
use datafusion::prelude::SessionConfig;
use planetree_base::error::{Error, Result};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

/// Certificates and token of a cluster. Both are optional, and the default has neither.
#[derive(Clone, Default)]
pub struct Security {
    tls: Option<Arc<Tls>>,
    token: Option<Token>,
}

struct Tls {
    client: ClientTlsConfig,
    acceptor: TlsAcceptor,
}

impl Security {
    /// Reads PEM files with the authority's certificate, our own certificate and its private key. Either all three or
    /// none must be given.
    pub fn read(authority: Option<&Path>, certificate: Option<&Path>, key: Option<&Path>) -> Result<Self> {
        let (authority, certificate, key) = match (authority, certificate, key) {
            (Some(authority), Some(certificate), Some(key)) => (authority, certificate, key),
            (None, None, None) => return Ok(Security::default()),
            _ => {
                return Err(Error::usage(
                    "TLS needs an authority, a certificate and its key",
                    "pass all of --tls-ca, --tls-certificate and --tls-key, or none",
                ));
            }
        };
        let read =
            |file: &Path| std::fs::read(file).map_err(|error| Error::io(file.display(), "read", error));
        let identity = Identity::from_pem(read(certificate)?, read(key)?);
        let client = ClientTlsConfig::new()
            .ca_certificate(Certificate::from_pem(read(authority)?))
            .identity(identity)
            .timeout(Duration::from_secs(10));
        let acceptor = acceptor(authority, certificate, key)?;
        Ok(Security { tls: Some(Arc::new(Tls { client, acceptor })), token: None })
    }

    /// Reads the token from a file and adds it. Without a file, there is no token.
    pub fn with_token(self, file: Option<&Path>) -> Result<Self> {
        Ok(Security { token: file.map(Token::read).transpose()?, ..self })
    }

    /// Returns the token that every request must carry.
    pub(super) fn token(&self) -> Option<&Token> {
        self.token.as_ref()
    }

    /// Returns whether connections are encrypted.
    pub(crate) fn uses_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Configures a session as a client, with certificates and token.
    pub fn client(&self, config: SessionConfig) -> SessionConfig {
        config
            .with_ballista_use_tls(self.uses_tls())
            .with_ballista_override_create_grpc_client_endpoint(self.endpoint())
    }

    /// Returns a function that adds encryption, the token and pings to a client's endpoint. A connection whose other end
    /// stops answering pings is closed: without them, the engine would wait forever for the results of a process that
    /// hangs.
    pub fn endpoint(&self) -> EndpointOverrideFn {
        let client = self.tls.as_ref().map(|tls| tls.client.clone());
        let token = self.token.clone();
        Arc::new(move |endpoint: Endpoint| {
            let endpoint = match &client {
                None => endpoint,
                Some(_) => {
                    let authority = endpoint.uri().authority().map(ToString::to_string).unwrap_or_default();
                    Endpoint::from_shared(format!("https://{authority}"))?
                        .tcp_nodelay(true)
                        .tcp_keepalive(Some(Duration::from_secs(60)))
                        .initial_connection_window_size(Some(64 << 20))
                        .initial_stream_window_size(Some(16 << 20))
                }
            };
            let endpoint = endpoint
                .connect_timeout(Duration::from_secs(10))
                .http2_keep_alive_interval(PING_INTERVAL)
                .keep_alive_timeout(PING_TIMEOUT)
                .keep_alive_while_idle(true);
            let endpoint = match &token {
                Some(token) => token.bring(endpoint)?,
                None => endpoint,
            };
            match &client {
                Some(client) => Ok(endpoint.tls_config(client.clone())?),
                None => Ok(endpoint),
            }
        })
    }

    /// Returns the address that the engine binds when clients connect to `outer`. Without encryption it is `outer`
    /// itself. Otherwise a proxy binds `outer`, and the engine binds the same port on another loopback address,
    /// because the engine announces the port that it binds.
    pub fn inner(&self, outer: SocketAddr) -> Result<SocketAddr> {
        if !self.uses_tls() {
            return Ok(outer);
        }
        Self::behind(outer, Ipv4Addr::new(127, 0, 0, 2))
    }

    /// Like [`inner`](Self::inner), but for an executor, which is also behind a proxy if there is a token.
    pub(crate) fn inner_of_executor(&self, outer: SocketAddr) -> Result<SocketAddr> {
        match &self.token {
            None => self.inner(outer),
            Some(_) => Self::behind(outer, Ipv4Addr::new(127, 0, 0, 2)),
        }
    }

    /// Returns a loopback address with the port of `outer`, to be used behind a proxy.
    fn behind(outer: SocketAddr, other: Ipv4Addr) -> Result<SocketAddr> {
        if outer.ip().is_unspecified() {
            return Err(Error::usage(
                format_args!("--bind {}: certificates and tokens need a single address", outer.ip()),
                "bind to the address at which other machines reach this one",
            ));
        }
        let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
        Ok(SocketAddr::new(if outer.ip() == here { IpAddr::V4(other) } else { here }, outer.port()))
    }

    /// Starts the proxies of an executor. Connections pass through the TLS proxy first, then through the one that
    /// checks the token.
    pub(crate) async fn start_executor_proxy(
        &self,
        outer: SocketAddr,
        inner: SocketAddr,
    ) -> std::io::Result<()> {
        let Some(token) = &self.token else { return self.start_proxy(outer, inner).await };
        if !self.uses_tls() {
            return token.start_proxy(outer, inner);
        }
        let between = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 3)), outer.port());
        token.start_proxy(between, inner)?;
        self.start_proxy(outer, between).await
    }

    /// Starts the TLS proxy, which forwards connections with a valid client certificate from `outer` to `inner`. Does
    /// nothing if the cluster is not encrypted.
    pub(crate) async fn start_proxy(&self, outer: SocketAddr, inner: SocketAddr) -> std::io::Result<()> {
        let Some(tls) = self.tls.clone() else { return Ok(()) };
        let listener = TcpListener::bind(outer).await?;
        tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else {
                    tokio::time::sleep(HANDSHAKE / 100).await; // too many open files: wait for some to close
                    continue;
                };
                let tls = tls.clone();
                tokio::spawn(async move {
                    let _ = stream.set_nodelay(true);
                    // The handshake rejects clients without a valid certificate. They receive no other reply.
                    let handshake = tokio::time::timeout(HANDSHAKE, tls.acceptor.accept(stream));
                    let Ok(Ok(mut outside)) = handshake.await else { return };
                    let Ok(mut inside) = TcpStream::connect(inner).await else { return };
                    let _ = inside.set_nodelay(true);
                    let _ = tokio::io::copy_bidirectional(&mut outside, &mut inside).await;
                });
            }
        });
        Ok(())
    }
}

/// Interval between pings on a connection.
const PING_INTERVAL: Duration = Duration::from_secs(10);

/// Time without an answer to a ping after which a connection is closed.
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// Maximum time for a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

fn acceptor(authority: &Path, certificate: &Path, key: &Path) -> Result<TlsAcceptor> {
    let unfit = |file: &Path, problem: &dyn std::fmt::Display| {
        Error::place(
            file.display(),
            format_args!("not usable for TLS: {problem}"),
            "use a PEM file of the right kind",
        )
    };
    let certificates = |file: &Path| -> Result<Vec<CertificateDer<'static>>> {
        let all = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
        let all: Vec<_> = all.map_err(|error| unfit(file, &error))?;
        if all.is_empty() { Err(unfit(file, &"no certificate found")) } else { Ok(all) }
    };
    let mut roots = RootCertStore::empty();
    for root in certificates(authority)? {
        roots.add(root).map_err(|error| unfit(authority, &error))?;
    }
    let provider = Arc::new(default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|error| unfit(authority, &error))?;
    let own_key = PrivateKeyDer::from_pem_file(key).map_err(|error| unfit(key, &error))?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unfit(certificate, &error))?
        .with_client_cert_verifier(verifier)
        .with_single_cert(certificates(certificate)?, own_key)
        .map_err(|error| unfit(certificate, &error))?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
