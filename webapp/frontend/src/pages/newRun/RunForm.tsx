import { Button } from '@mantine/core';
import { IconFlask, IconPlayerPlay } from '@tabler/icons-react';
import { useState } from 'react';
import { Link, useNavigate } from 'react-router';
import { ApiError, api, sentence } from '@/api/client';
import { useChange, useSupports } from '@/api/queries';
import type { Catalogue, ClusterRow, Objective, RunRequest, Showcase } from '@/api/types';
import { useAdvice } from '@/advice/useAdvice';
import { ErrorPanel } from '@/components/ErrorPanel';
import { AllocationView } from '@/run/allocation/AllocationView';
import { MethodView } from '@/run/views/MethodView';
import { ClusterPicker } from './ClusterPicker';
import { type Draft, missing, pairOf, toRequest } from '@/run/request/draft';
import { ExecutionForm } from './ExecutionForm';
import { ModelPicker } from './ModelPicker';
import classes from './newRun.module.css';
import { PlanEditor } from './plan/PlanEditor';
import { PredictionPanel } from './PredictionPanel';
import { SchemaForm } from '@/run/params/SchemaForm';
import { ScenarioForm } from './ScenarioForm';
import { Section } from './Section';
import { ShowcasePicker } from './ShowcasePicker';
import { StrategyPicker } from './StrategyPicker';
import { usePrediction } from './usePrediction';
import { WhyPlan } from './WhyPlan';
import { WorkloadForm } from './WorkloadForm';

interface Props {
  initial: Draft;
  clusters: ClusterRow[];
  catalogue: Catalogue;
  showcases: readonly Showcase[];
  showcase: { name: string; other: string } | null;
  onShowcase: (name: string, other: string) => void;
  /** Open the editor of the plan at once. */
  editsPlan: boolean;
}

/** The form of a new run at the left; its prediction and the start button at the right. */
export function RunForm({ initial, clusters, catalogue, showcases, showcase, onShowcase, editsPlan }: Props) {
  const navigate = useNavigate();
  const [draft, setDraft] = useState(initial);
  const set = (patch: Partial<Draft>) => setDraft((old) => ({ ...old, ...patch }));
  const model = catalogue.models.find((row) => row.name === draft.model);
  const strategy = catalogue.strategies.find((row) => row.name === draft.strategy);
  const cluster = draft.frozen ?? clusters.find((row) => row.id === draft.clusterId)?.spec;
  const reasons = useSupports(pairOf(draft)).data ?? {};
  const lacking = missing(draft, model);
  const request = lacking ? null : toRequest(draft, model);
  const [by, setBy] = useState<Objective>('total_s');
  const pair = pairOf(draft);
  const advised = useAdvice(pair && request && { ...pair, workload: request.workload });
  const prediction = usePrediction(request);
  const byHand = draft.params[draft.strategy]?.plan ?? null;
  const own = usePrediction(request && byHand ? withoutPlan(request) : null);
  const start = useChange('runs', (asked: RunRequest) => api.post<{ id: number }>('/runs', asked));
  const refusal =
    prediction.error instanceof ApiError
      ? prediction.error
      : start.error instanceof ApiError
        ? start.error
        : null;
  const errorOf = (path: string) => refusal?.about(path);
  const plan = prediction.data?.plan;
  const spec = prediction.data?.report.spec;
  const go = () => request && start.mutate(request, { onSuccess: ({ id }) => navigate(`/runs/${id}`) });

  return (
    <div className={classes.columns}>
      <div className={classes.form}>
        <Section title="Showcase" about="fills in the whole form, or leave it and choose below">
          <ShowcasePicker showcases={showcases} chosen={showcase} onChoose={onShowcase} />
        </Section>
        <Section title="Cluster" error={errorOf('cluster_id') ?? errorOf('cluster')}>
          <ClusterPicker
            clusters={clusters}
            clusterId={draft.clusterId}
            frozen={draft.frozen}
            earlier={initial.frozen}
            about={showcase ? 'the cluster of the showcase' : 'as it was in the earlier run'}
            onChoose={(clusterId, frozen) => set({ clusterId, frozen })}
          />
        </Section>
        <Section title="Model" error={errorOf('model') ?? errorOf('weights')}>
          <ModelPicker
            models={catalogue.models}
            model={draft.model}
            randomWeights={draft.randomWeights}
            onModel={(name) => set({ model: name, randomWeights: false })}
            onRandomWeights={(randomWeights) => set({ randomWeights })}
          />
        </Section>
        <Section title="Strategy" error={errorOf('strategy')}>
          <StrategyPicker
            strategies={catalogue.strategies}
            strategy={draft.strategy}
            reasons={reasons}
            advice={advised.advice?.rows}
            stale={advised.stale}
            by={by}
            onBy={setBy}
            onChoose={(name) => set({ strategy: name })}
          />
        </Section>
        {strategy && Object.keys(strategy.params_schema.properties ?? {}).length > 0 && (
          <Section title="Parameters" about={strategy.title}>
            <SchemaForm
              key={strategy.name}
              schema={strategy.params_schema}
              values={draft.params[strategy.name] ?? {}}
              onChange={(values) => set({ params: { ...draft.params, [strategy.name]: values } })}
              errorOf={(key) => errorOf(`params.${key}`)}
              deviceNames={cluster?.devices.map((device) => device.name) ?? []}
            />
          </Section>
        )}
        {strategy && cluster && (
          <Section title="Plan" about="who gets how much" error={errorOf('params.plan')}>
            <PlanEditor
              key={strategy.name}
              value={byHand}
              onChange={(value) =>
                set({
                  params: {
                    ...draft.params,
                    [strategy.name]: { ...draft.params[strategy.name], plan: value },
                  },
                })
              }
              editable={plan?.strategy === strategy.name ? prediction.data?.editable : undefined}
              report={prediction.error ? undefined : prediction.data?.report}
              own={own.error ? undefined : own.data?.report}
              refusal={prediction.error ? sentence(prediction.error) : null}
              begin={editsPlan && initial.strategy === strategy.name}
              devices={cluster.devices}
              waiting={prediction.waiting}
            />
          </Section>
        )}
        {plan && spec && !prediction.error && (
          <div className={classes.form} data-waiting={prediction.waiting || undefined}>
            <AllocationView
              plan={plan}
              model={spec.model}
              devices={spec.cluster.devices.map((device) => device.name)}
            />
            <MethodView
              plan={plan}
              model={spec.model}
              devices={spec.cluster.devices}
              data={null}
              version={0}
            />
          </div>
        )}
        <Section
          title="Workload"
          error={
            errorOf('workload') && !errorOf('workload.prompt') && !errorOf('workload.image')
              ? errorOf('workload')
              : undefined
          }
        >
          <WorkloadForm draft={draft} model={model} set={set} errorOf={errorOf} />
        </Section>
        <Section
          title="Scenario"
          about="changes at set times, besides those that you make live"
          error={errorOf('scenario')}
        >
          <ScenarioForm draft={draft} cluster={cluster} set={set} />
        </Section>
        <Section title="Execution">
          <ExecutionForm draft={draft} set={set} errorOf={errorOf} />
        </Section>
      </div>
      <aside className={classes.aside}>
        <PredictionPanel {...prediction} missing={lacking} onRetry={() => prediction.retry()} />
        <WhyPlan request={request} report={prediction.error ? undefined : prediction.data?.report} />
        {start.error && <ErrorPanel title="Not started" message={sentence(start.error)} />}
        <Button
          size="md"
          leftSection={<IconPlayerPlay size={18} />}
          onClick={go}
          loading={start.isPending || start.isSuccess}
          disabled={!request}
          data-testid="start-run"
        >
          Start the run
        </Button>
        <Button
          variant="default"
          leftSection={<IconFlask size={16} />}
          component={Link}
          to="/experiments/new"
          state={{ draft }}
          data-testid="experiment-from-draft"
        >
          Vary it in an experiment
        </Button>
      </aside>
    </div>
  );
}

/** The same run as the strategy plans it by itself. */
function withoutPlan(request: RunRequest): RunRequest {
  return { ...request, params: { ...request.params, plan: null } };
}
