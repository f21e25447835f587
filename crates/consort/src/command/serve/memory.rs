//! Return of unused memory to the system.

use std::convert::Infallible;
use std::time::Duration;

use consort_client::platform;
use consort_protocol::MemoryBudget;

/// Time without a large message before memory is returned.
const QUIET: Duration = Duration::from_secs(1);

/// Returns memory once after the start and whenever large messages have stopped arriving. The allocator purges only
/// while it is used, and an idle gateway does not use it.
pub(super) async fn give_back(budget: &MemoryBudget) -> Infallible {
    let usage = || (budget.messages(), budget.available());
    let (mut seen, mut purged) = (usage(), None);
    loop {
        tokio::time::sleep(QUIET).await;
        let now = usage();
        if now == seen && purged != Some(now) {
            collect();
            if purged.is_none() {
                // Most of the code that has run by now reads a config or a command line and does not run again.
                platform::unmap_code();
            }
            purged = Some(now);
        }
        seen = now;
    }
}

/// Makes the allocator return free memory to the system.
fn collect() {
    #[expect(unsafe_code, reason = "the crate `mimalloc` does not pass this function on")]
    unsafe extern "C" {
        safe fn mi_collect(force: bool);
    }
    mi_collect(true);
}
