//! Commands of the config that only tell something.

use std::time::Duration;

use tapedeck_shell::ShellCommand;

/// What a command printed, or why it told nothing.
pub type Told = Result<String, String>;

/// Runs a command to its end, but no longer than `limit`. It inherits the environment and none of it is written down.
pub(crate) async fn run(command: &str, limit: Duration) -> Told {
    let done = ShellCommand { limit, ..ShellCommand::new(command) }
        .run()
        .await
        .map_err(|error| error.to_string())?;
    if done.status.success() {
        Ok(done.stdout.trim_end().to_owned())
    } else {
        Err(format!("ended with {}: {}", done.status, done.last_words()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn output_is_kept_and_failures_say_why() {
        let long = Duration::from_secs(60);
        assert_eq!(run("printf 'vllm 0.11.0\\n\\n'", long).await, Ok("vllm 0.11.0".to_owned()));
        let failed = run("echo no such host >&2; exit 3", long).await.unwrap_err();
        assert!(failed.contains('3') && failed.contains("no such host"), "{failed}");
        let slow = run("exec sleep 600", Duration::from_millis(20)).await.unwrap_err();
        assert!(slow.contains("took longer"), "{slow}");
    }
}
