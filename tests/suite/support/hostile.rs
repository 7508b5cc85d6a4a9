//! Bytes on the ports of a cluster that none of its processes would send.

use planetree::random::Stream;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u8, content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags, 0, 0, 0, stream], content].concat()
}

/// A request of gRPC: the start of a connection, headers, and a message that need not be as long as its length says.
pub fn request(method: &str, agent: &str, length: u32, message: &[u8]) -> Vec<u8> {
    let mut headers = Vec::new();
    for (name, value) in [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", method),
        (":authority", "127.0.0.1"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
        ("user-agent", agent),
    ] {
        headers.push(0); // a literal that is not indexed
        for text in [name, value] {
            headers.push(text.len() as u8);
            headers.extend_from_slice(text.as_bytes());
        }
    }
    let message = [&[0], length.to_be_bytes().as_slice(), message].concat();
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(4, 0, 0, &[]));
    bytes.extend(frame(1, 4, 1, &headers));
    bytes.extend(frame(0, u8::from(message.len() == length as usize + 5), 1, &message));
    bytes
}

/// Sends bytes to a port and reads until nothing has come for a while; what came back.
pub fn send(port: u16, bytes: &[u8], patience: Duration) -> Vec<u8> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(patience)).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(2))).unwrap();
    let _ = stream.write_all(bytes); // the other side may have closed the connection
    let (mut received, mut some) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = stream.read(&mut some) {
        received.extend_from_slice(&some[..count]);
    }
    received
}

/// Sends bytes to a port and reads until the answer is complete or the connection ends; what came back.
pub fn send_until(port: u16, bytes: &[u8], is_complete: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let _ = stream.write_all(bytes); // the other side may have closed the connection
    let (mut received, mut some) = (Vec::new(), [0; 4096]);
    while !is_complete(&received) {
        let Ok(count @ 1..) = stream.read(&mut some) else { break };
        received.extend_from_slice(&some[..count]);
    }
    received
}

/// Whether an answer of HTTP/2 has a frame of headers, which begin with the status.
pub fn has_headers(mut answer: &[u8]) -> bool {
    while let [a, b, c, kind, ..] = answer {
        if *kind == 1 {
            return true;
        }
        let length = 9 + u32::from_be_bytes([0, *a, *b, *c]) as usize;
        let Some(rest) = answer.get(length..) else { return false };
        answer = rest;
    }
    false
}

pub const SCHEDULER: &str = "/ballista.protobuf.SchedulerGrpc/";
pub const EXECUTOR: &str = "/ballista.protobuf.ExecutorGrpc/";
pub const RESULTS: &str = "/arrow.flight.protocol.FlightService/";

/// Bytes that no client would send.
pub fn hostile_bytes(draw: &mut Stream) -> Vec<Vec<u8>> {
    let mut noise = |count: u64| -> Vec<u8> { (0..count).map(|_| draw.bits() as u8).collect() };
    let mut all = vec![
        noise(1),
        noise(9),
        noise(100_000),
        vec![0xFF; 1 << 20],
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
        format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "y".repeat(1 << 20)).into_bytes(),
        b"POST / HTTP/1.1\r\nContent-Length: 18446744073709551615\r\n\r\n{}".to_vec(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(), // the start of a TLS handshake
        [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), noise(5000)].concat(),
        // Frames that claim the largest length, and a window that overflows.
        [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xFF\xFF\xFF\x04".to_vec(), vec![0; 100]].concat(),
        [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), frame(8, 0, 0, &[0x7F, 0xFF, 0xFF, 0xFF])].concat(),
    ];
    for (service, methods) in [
        (SCHEDULER, ["ExecuteQuery", "ExecuteQueryPush", "RegisterExecutor", "UpdateTaskStatus"]),
        (EXECUTOR, ["LaunchMultiTask", "CancelTasks", "RemoveJobData", "NoSuchMethod"]),
        (RESULTS, ["DoGet", "DoAction", "DoPut", "GetFlightInfo"]),
    ] {
        for method in methods {
            let method = format!("{service}{method}");
            // A message that is said to have 4 GiB, one that is said to have 250 MiB, and random ones.
            all.push(request(&method, "x", u32::MAX, &[1; 100]));
            all.push(request(&method, "x", 250 << 20, &[1; 100]));
            for count in [3, 40, 400] {
                all.push(request(&method, "x", count, &noise(u64::from(count))));
            }
        }
    }
    all
}
