//! Surveys of the definitions of servers that are started for it.

use consort::servers::{LastGoodServers, hub_settings};
use consort::toolbox_layers::ToolboxLayers;
use consort::trust::TrustedConfig;
use consort_config::lock::{DefinitionSurvey, SurveyPlan, SurveyScope};
use consort_config::{InputStore, SystemValues};
use consort_core::{Problem, Toolbox};
use consort_hub::ConnectTrigger;
use consort_shape::pin::PinLock;

use crate::command_hub::{self, CatalogFreshness, CommandHub, tell};
use crate::user::caller;

/// Starts the servers in the scope and takes their definitions; `None` if interrupted.
pub(crate) async fn survey(
    mut config: TrustedConfig,
    agreed: &PinLock,
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
    let running = survey_hub(&config);
    let reached = tokio::select! {
        () = running.connect_servers(None, CatalogFreshness::Fresh) => true,
        _ = tokio::signal::ctrl_c() => false,
    };
    let catalog = running.hub.catalog(&caller());
    let survey = plan.survey(&catalog, &running.hub.statuses(), agreed, scope);
    running.end().await;
    reached.then_some(survey)
}

/// A hub for the servers' own definitions: without the transforms of the config, and without Consort's own tools.
fn survey_hub(config: &TrustedConfig) -> CommandHub {
    let resolve =
        SystemValues::asking(command_hub::prompt_for_input).with_store(InputStore::of_user());
    let (mut settings, servers) = hub_settings(config, &resolve, &LastGoodServers::default());
    let bad = servers.bad.into_iter().map(|bad| bad.problem);
    let problems: Vec<Problem> = bad.chain(config.problems.iter().cloned()).collect();
    problems.iter().for_each(tell);
    settings.local.clear();
    for server in &mut settings.servers {
        server.connect = ConnectTrigger::Call;
    }
    CommandHub::with_settings(settings, ToolboxLayers::default(), problems)
}
