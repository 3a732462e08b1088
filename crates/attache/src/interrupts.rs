//! Ctrl-C while something is shown. It is listened to from the beginning to the end: a listener that
//! is made anew for each wait would miss what is pressed between two waits.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::fail::{Failure, NOT_FOUND};

/// Presses of Ctrl-C since this was made.
pub(crate) struct Interrupts(Signal);

impl Interrupts {
    /// From now on the process is not ended by Ctrl-C.
    pub(crate) fn listen() -> Result<Self, Failure> {
        signal(SignalKind::interrupt()).map(Self).map_err(|fault| {
            let message = format!("Ctrl-C cannot be listened to: {fault}");
            Failure::new(NOT_FOUND, "internal", message)
        })
    }

    /// Waits for a press. One that came before is not lost; several at once may count as one.
    pub(crate) async fn pressed(&mut self) {
        if self.0.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_press_between_two_waits_is_kept() {
        let mut interrupts = Interrupts::listen().unwrap();
        tokio::select! {
            biased;
            () = interrupts.pressed() => panic!("nobody pressed"),
            () = std::future::ready(()) => {}
        }
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::INT)
            .unwrap();
        interrupts.pressed().await;
    }
}
