//! Authenticates requests with a shared secret, the token. Every request within a cluster must carry the token. The
//! scheduler checks it with an interceptor. The engine starts the servers of executors itself, so these are behind a
//! proxy that forwards only authenticated requests.

use planetree_base::error::{Error, Result};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Context, Poll, Service, http};
use tonic::server::NamedService;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Status};

/// Prefix of the token in the user-agent header, which is the only header that all of the engine's clients allow us to
/// set.
const PREFIX: &str = "planetree-token-";

/// Minimum length of a token, so that it cannot be guessed quickly.
const SHORTEST: usize = 16;

/// The shared secret of a cluster.
#[derive(Clone)]
pub(crate) struct Token {
    /// The token with its prefix.
    text: Arc<str>,
}

impl Token {
    /// Reads a file that contains only the token.
    pub(crate) fn read(file: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(file).map_err(|error| Error::io(file.display(), "read", error))?;
        let word = text.trim();
        if word.len() < SHORTEST || !word.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Error::place(
                file.display(),
                format_args!("a token is one word of at least {SHORTEST} ASCII characters"),
                "create one: (umask 077; head -c 32 /dev/urandom | base64 > token)",
            ));
        }
        Ok(Token { text: format!("{PREFIX}{word}").into() })
    }

    /// Makes a client send the token with every request.
    pub(crate) fn bring(&self, endpoint: Endpoint) -> std::result::Result<Endpoint, tonic::transport::Error> {
        endpoint.user_agent(&*self.text)
    }

    /// Rejects a request without the right token. The comparison takes the same time however much of the token matches.
    fn check(&self, agent: Option<&[u8]>) -> std::result::Result<(), Status> {
        let brought = agent.unwrap_or_default().split(|byte| *byte == b' ').next().unwrap_or_default();
        let expected = self.text.as_bytes();
        let differs = brought.iter().zip(expected).fold(0, |all, (one, other)| all | (one ^ other));
        if brought.len() == expected.len() && differs == 0 {
            return Ok(());
        }
        Err(Status::unauthenticated(
            "the token is missing or wrong: pass the token of the cluster with --token-file",
        ))
    }

    /// Returns an interceptor that checks every request to the scheduler.
    pub(crate) fn interceptor(
        token: Option<Token>,
    ) -> impl FnMut(Request<()>) -> std::result::Result<Request<()>, Status> + Clone {
        move |request| {
            if let Some(token) = &token {
                token.check(request.metadata().get("user-agent").map(|agent| agent.as_bytes()))?;
            }
            Ok(request)
        }
    }

    /// Starts a proxy that forwards requests with the right token from `outer` to `inner`.
    pub(crate) fn start_proxy(&self, outer: SocketAddr, inner: SocketAddr) -> std::io::Result<()> {
        let incoming = TcpIncoming::bind(outer).map_err(std::io::Error::other)?.with_nodelay(Some(true));
        let endpoint = Endpoint::from_shared(format!("http://{inner}")).map_err(std::io::Error::other)?;
        let channel = endpoint
            .tcp_nodelay(true)
            .initial_connection_window_size(Some(64 << 20))
            .initial_stream_window_size(Some(16 << 20))
            .connect_lazy();
        let door = TokenProxy { token: self.clone(), inner: channel };
        let server = Server::builder()
            .initial_connection_window_size(Some(64 << 20))
            .initial_stream_window_size(Some(16 << 20))
            .add_service(Tasks(door.clone()))
            .add_service(Results(door));
        tokio::spawn(server.serve_with_incoming(incoming));
        Ok(())
    }
}

/// Proxy service that forwards only authenticated requests.
#[derive(Clone)]
struct TokenProxy {
    token: Token,
    inner: Channel,
}

impl TokenProxy {
    fn pass(
        &self,
        request: http::Request<Body>,
    ) -> BoxFuture<http::Response<Body>, std::convert::Infallible> {
        let agent = request.headers().get("user-agent").map(|agent| agent.as_bytes());
        let checked = self.token.check(agent);
        let mut inner = self.inner.clone();
        Box::pin(async move {
            if let Err(refused) = checked {
                return Ok(refused.into_http());
            }
            let ready = std::future::poll_fn(|context| inner.poll_ready(context)).await;
            let answer = match ready {
                Ok(()) => inner.call(request).await,
                Err(error) => Err(error),
            };
            Ok(answer.unwrap_or_else(|error| Status::unavailable(error.to_string()).into_http()))
        })
    }
}

/// Defines the proxy of one of an executor's services.
macro_rules! proxied_service {
    ($name:ident, $service:literal) => {
        #[derive(Clone)]
        struct $name(TokenProxy);

        impl NamedService for $name {
            const NAME: &'static str = $service;
        }

        impl Service<http::Request<Body>> for $name {
            type Response = http::Response<Body>;
            type Error = std::convert::Infallible;
            type Future = BoxFuture<Self::Response, Self::Error>;

            fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<std::result::Result<(), Self::Error>> {
                Poll::Ready(Ok(()))
            }

            fn call(&mut self, request: http::Request<Body>) -> Self::Future {
                self.0.pass(request)
            }
        }
    };
}

proxied_service!(Tasks, "ballista.protobuf.ExecutorGrpc");
proxied_service!(Results, "arrow.flight.protocol.FlightService");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_fits() {
        let room = tempfile::tempdir().unwrap();
        let file = room.path().join("token");
        std::fs::write(&file, "0123456789abcdef\n").unwrap();
        let token = Token::read(&file).unwrap();
        let fits = |agent: &str| token.check(Some(agent.as_bytes())).is_ok();
        assert!(fits("planetree-token-0123456789abcdef tonic/0.14"));
        assert!(fits("planetree-token-0123456789abcdef"));
        for wrong in [
            "",
            "tonic/0.14",
            "planetree-token-",
            "planetree-token-0123456789abcdeF",
            "planetree-token-0123456789abcdef0",
        ] {
            assert!(!fits(wrong), "{wrong}");
        }
        assert!(token.check(None).is_err());
        for unfit in ["short", "two words of many letters", "ümlaute-sind-keine-hilfe"] {
            std::fs::write(&file, unfit).unwrap();
            assert!(Token::read(&file).is_err(), "{unfit}");
        }
    }
}
