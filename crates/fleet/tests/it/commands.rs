//! Control commands with a real shell.

use std::time::Duration;

use tapedeck_fleet::{Action, Control, ControlError, ShellControl, pool_from};

fn control(command: &str) -> ShellControl {
    let commands = [(Action::Kill, command.to_owned())].into();
    ShellControl { commands: [("one".to_owned(), commands)].into(), timeout: None }
}

#[tokio::test]
async fn output_comes_back_from_both_streams() {
    let output = control("echo out; echo err >&2").run("one", Action::Kill).await.unwrap();
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("out\n", "err\n"));
}

#[tokio::test]
async fn what_is_not_in_the_config_is_not_done() {
    let control = control("true");
    assert!(
        control.can("one", Action::Kill)
            && !control.can("one", Action::Start)
            && !control.can("two", Action::Kill)
    );
    let error = control.run("one", Action::Start).await.unwrap_err();
    assert!(
        matches!(error, ControlError::NoCommand { .. }) && error.to_string().contains("start = "),
        "{error}"
    );
    let error = control.run("two", Action::Kill).await.unwrap_err();
    assert!(
        matches!(error, ControlError::NotManaged { .. }) && error.to_string().contains("managed = true"),
        "{error}"
    );
}

#[tokio::test]
async fn a_failure_repeats_the_last_words() {
    let error =
        control("echo working; echo 'no such unit' >&2; exit 3").run("one", Action::Kill).await.unwrap_err();
    let ControlError::Failed { how, said, .. } = &error else { panic!("{error}") };
    assert!(how.contains('3') && error.to_string().contains("kill of one"), "{error}");
    assert_eq!(said, "no such unit");
}

#[tokio::test]
async fn a_command_that_hangs_is_given_up() {
    let control = ShellControl { timeout: Some(Duration::from_millis(30)), ..control("exec sleep 600") };
    let error = control.run("one", Action::Kill).await.unwrap_err();
    assert!(matches!(error, ControlError::TimedOut { .. }), "{error}");
}

#[tokio::test]
async fn a_long_log_keeps_both_ends() {
    let command = "echo BEGIN; head -c 20000000 /dev/zero | tr '\\0' x; echo END";
    let output = control(command).run("one", Action::Kill).await.unwrap();
    assert!(output.stdout.len() < 14 << 20, "{}", output.stdout.len());
    assert!(output.stdout.starts_with("BEGIN\nx") && output.stdout.ends_with("xEND\n"));
    assert!(output.stdout.contains("\n[...]\n"));
}

#[tokio::test]
async fn a_log_tells_the_pool_on_either_stream() {
    for stream in ["", " >&2"] {
        let log = format!("echo 'GPU KV cache size: 123,456 tokens'{stream}");
        let commands = [(Action::Log, log)].into();
        let control = ShellControl { commands: [("one".to_owned(), commands)].into(), timeout: None };
        let pool = pool_from(&control, "one").await.unwrap().unwrap();
        assert_eq!(pool.size_tokens, Some(123_456));
        assert!(pool_from(&control, "two").await.is_err());
    }
}
