//! Commands of the config that only tell something, run through `sh -c`.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::time::timeout;

/// Most that is kept of what a command prints, bytes. The rest is read and thrown away.
const KEPT_BYTES: usize = 64 << 10;

/// What a command printed, or why it told nothing.
pub type Told = Result<String, String>;

/// Runs a command to its end, but no longer than `limit`. It inherits the environment and none of it is written down.
pub(crate) async fn run(command: &str, limit: Duration) -> Told {
    let running = async {
        let mut child = Command::new("sh")
            .arg("-c")
            .arg(command)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (stdout, stderr, status) = tokio::join!(biased; read(stdout), read(stderr), child.wait());
        Ok::<_, std::io::Error>((stdout?, stderr?, status?))
    };
    match timeout(limit, running).await {
        Err(_) => Err(format!("took longer than {limit:?} and was ended")),
        Ok(Err(error)) => Err(format!("could not be run: {error}")),
        Ok(Ok((stdout, _, status))) if status.success() => Ok(stdout),
        Ok(Ok((stdout, stderr, status))) => {
            let said = stderr.lines().chain(stdout.lines()).rfind(|line| !line.trim().is_empty());
            Err(format!("ended with {status}: {}", said.unwrap_or("it said nothing")))
        }
    }
}

async fn read(stream: Option<impl AsyncRead + Unpin>) -> std::io::Result<String> {
    let Some(mut stream) = stream else { return Ok(String::new()) };
    let (mut kept, mut scrap) = (Vec::new(), Vec::new());
    loop {
        let into = if kept.len() < KEPT_BYTES { &mut kept } else { &mut scrap };
        if stream.read_buf(into).await? == 0 {
            break;
        }
        scrap.clear();
    }
    kept.truncate(KEPT_BYTES);
    Ok(String::from_utf8_lossy(&kept).trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn output_is_kept_and_failures_say_why() {
        assert_eq!(run("printf 'vllm 0.11.0\\n\\n'", LONG).await, Ok("vllm 0.11.0".to_owned()));
        let failed = run("echo no such host >&2; exit 3", LONG).await.unwrap_err();
        assert!(failed.contains('3') && failed.contains("no such host"), "{failed}");
        let slow = run("exec sleep 600", Duration::from_millis(20)).await.unwrap_err();
        assert!(slow.contains("took longer"), "{slow}");
    }

    #[tokio::test]
    async fn a_flood_is_read_to_its_end_and_cut() {
        let kept = run("head -c 300000 /dev/zero | tr '\\0' x", LONG).await.unwrap();
        assert_eq!(kept.len(), KEPT_BYTES);
    }
}
