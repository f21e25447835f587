//! Surveys of the definitions of servers that are started for it.

use consort::servers::{LastGoodServers, hub_settings};
use consort::shaping::Shaping;
use consort::trust::TrustedConfig;
use consort_config::SystemValues;
use consort_config::lock::{DefinitionSurvey, SurveyPlan, SurveyScope};
use consort_core::{Problem, Toolbox};
use consort_hub::Connect;
use consort_shape::pin::Lock;

use crate::running::{self, Need, Running, tell};
use crate::user::caller;

/// Starts the servers in the scope and takes their definitions; `None` if interrupted.
pub(crate) async fn survey(
    mut config: TrustedConfig,
    agreed: &Lock,
    scope: &SurveyScope<'_>,
) -> Option<DefinitionSurvey> {
    let plan = SurveyPlan::new(&config);
    config.retain_servers(|server| !server.disabled);
    config.retain_servers(|server| match scope {
        SurveyScope::All => true,
        SurveyScope::Named(named) => named.contains(&server.name),
        SurveyScope::Agreed => {
            agreed.withheld_server(&server.name, &plan.launches[&server.name]).is_none()
        }
    });
    let running = running(&config);
    let reached = tokio::select! {
        () = running.reach(None, Need::Fresh) => true,
        _ = tokio::signal::ctrl_c() => false,
    };
    let catalog = running.hub.catalog(&caller());
    let survey = plan.survey(&catalog, &running.hub.statuses(), agreed, scope);
    running.end().await;
    reached.then_some(survey)
}

/// A hub for the servers' own definitions: without the transforms of the config, and without Consort's own tools.
fn running(config: &TrustedConfig) -> Running {
    let resolve = SystemValues::asking(running::ask);
    let (mut settings, servers) = hub_settings(config, &resolve, &LastGoodServers::default());
    let bad = servers.bad.into_iter().map(|bad| bad.problem);
    let problems: Vec<Problem> = bad.chain(config.problems.iter().cloned()).collect();
    problems.iter().for_each(tell);
    settings.local.clear();
    for server in &mut settings.servers {
        server.connect = Connect::Call;
    }
    Running::of(settings, Shaping::default(), problems)
}
