//! A program that serves, in a process of its own, and a client just good enough.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use serde_json::Value;

/// Longer than anything here takes; a hang fails instead of hanging the suite.
const LIMIT: Duration = Duration::from_secs(60);

/// A running program, killed when dropped.
pub(crate) struct Served {
    child: Child,
    /// What it printed when it was ready.
    pub(crate) ready: Value,
}

impl Served {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"));
        Self { child, ready }
    }

    /// Where it listens, if that is one address.
    pub(crate) fn address(&self) -> &str {
        self.ready["listen"].as_str().unwrap()
    }

    pub(crate) fn terminate(&self) {
        let killed = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        assert!(killed.success());
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Exit code, and what it wrote to standard error where that is piped.
    pub(crate) fn wait(mut self) -> (Option<i32>, String) {
        let mut log = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            stderr.read_to_string(&mut log).unwrap();
        }
        (self.child.wait().unwrap().code(), log)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.set_write_timeout(Some(LIMIT)).unwrap();
    stream
}

/// Whole response to a GET.
pub(crate) fn get(address: &str, path: &str) -> String {
    let mut stream = connect(address);
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// A WebSocket client: every frame is masked with zeros, which changes nothing.
pub(crate) struct Call(BufReader<TcpStream>);

impl Call {
    /// The call, or the status line with which it was refused.
    pub(crate) fn open(address: &str, header: &str) -> Result<Self, String> {
        let mut stream = connect(address);
        write!(
            stream,
            "GET /asr HTTP/1.1\r\nhost: {address}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n{header}\r\n"
        )
        .unwrap();
        let mut reader = BufReader::new(stream);
        let mut status = String::new();
        reader.read_line(&mut status).unwrap();
        if !status.contains(" 101 ") {
            return Err(status);
        }
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            reader.read_line(&mut line).unwrap();
        }
        Ok(Self(reader))
    }

    pub(crate) fn send(&mut self, opcode: u8, payload: &[u8]) {
        let length = u16::try_from(payload.len()).unwrap();
        let mut frame = vec![0x80 | opcode, 0x80 | 126];
        frame.extend(length.to_be_bytes());
        frame.extend([0; 4]);
        frame.extend(payload);
        self.0.get_mut().write_all(&frame).unwrap();
    }

    /// The next frame: opcode and payload.
    pub(crate) fn receive(&mut self) -> (u8, Vec<u8>) {
        let mut head = [0; 2];
        self.0.read_exact(&mut head).unwrap();
        let length = match head[1] {
            126 => {
                let mut length = [0; 2];
                self.0.read_exact(&mut length).unwrap();
                usize::from(u16::from_be_bytes(length))
            }
            short => usize::from(short),
        };
        let mut payload = vec![0; length];
        self.0.read_exact(&mut payload).unwrap();
        (head[0] & 0x0f, payload)
    }
}
