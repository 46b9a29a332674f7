import { Button } from '@mantine/core';
import { IconFlask, IconPlayerPlay } from '@tabler/icons-react';
import { useState } from 'react';
import { Link, useNavigate } from '@/components/navigation';
import { ApiError, sentence } from '@/api/client';
import { useChange, useElsewhere, useSupports } from '@/api/queries';
import type { Catalogue, ClusterRow, Objective, RunRequest, Showcase } from '@/api/types';
import { useAdvice } from '@/advice/useAdvice';
import { ErrorPanel } from '@/components/ErrorPanel';
import { NotOffered } from '@/components/NotOffered';
import { AllocationView } from '@/run/allocation/AllocationView';
import { MethodView } from '@/run/views/MethodView';
import { ClusterPicker } from './ClusterPicker';
import {
  type Draft,
  missing,
  OF_ONE_MODEL,
  pairOf,
  playedIn,
  toRequest,
  withWork,
  type Work,
} from '@/run/request/draft';
import { remember } from '@/run/request/remembered';
import { startRun } from '@/run/request/startRun';
import { DraftPicker } from './DraftPicker';
import { ExecutionForm, executionText } from './ExecutionForm';
import { LabelsForm } from './LabelsForm';
import { ModelPicker } from './ModelPicker';
import classes from './newRun.module.css';
import { PlanEditor } from './plan/PlanEditor';
import { PredictionPanel } from './PredictionPanel';
import { SchemaForm } from '@/run/params/SchemaForm';
import { isRefusedForGood, type Refusal, refusalIn, type SectionTitle } from './refusals';
import { ScenarioForm } from './ScenarioForm';
import { FoldedSection, Section } from './Section';
import { ShowcasePicker } from './ShowcasePicker';
import { BestPlanner, StrategyPicker } from './StrategyPicker';
import { usePrediction } from '@/run/request/usePrediction';
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
  const model = catalogue.models.find((row) => row.name === draft.model);
  const strategy = catalogue.strategies.find((row) => row.name === draft.strategy);
  const cluster = draft.cluster ?? clusters.find((row) => row.id === draft.cluster_id)?.spec;
  const reasons = useSupports(pairOf(draft)).data ?? {};
  const elsewhere = useElsewhere();
  const lacking = missing(draft, model);
  const request = lacking ? null : toRequest(draft, model, cluster);
  const [by, setBy] = useState<Objective>('total_s');
  const pair = pairOf(draft);
  const advised = useAdvice(pair && request && { ...pair, workload: request.workload });
  const prediction = usePrediction(request);
  const byHand = draft.params[draft.strategy]?.plan ?? null;
  const bound = cluster?.devices.some((device) => device.node) ?? false;
  const played = cluster ? playedIn(cluster) : [];
  const own = usePrediction(request && byHand ? withoutPlan(request) : null);
  const start = useChange('runs', startRun);
  const set = (patch: Partial<Draft>) => {
    if (start.isError) start.reset(); // what the server said was about the run as it was
    setDraft((old) => ({ ...old, ...patch }));
  };
  const setWork = (patch: Partial<Work>) => {
    set({});
    setDraft((old) => withWork(old, patch));
  };
  const refusal = [prediction.error, start.error].find((error) => error instanceof ApiError);
  // A refusal is about the run itself; without an answer nobody knows, and the run may start.
  const unable = !prediction.waiting && isRefusedForGood(prediction.error);
  const errorOf = (path: string) => refusal?.about(path);
  const paramNames = Object.keys(strategy?.params_schema.properties ?? {}).filter((key) => key !== 'plan');
  const told = refusalIn(refusal, byHand !== null, paramNames);
  const state = (title: SectionTitle) => ({
    title,
    error: told?.section === title ? (told.message ?? undefined) : undefined,
    refused: told?.section === title,
  });
  const params = draft.params[draft.strategy] ?? {};
  const planned = byHand !== null || params.planner !== undefined;
  const setParams = (values: Readonly<Record<string, unknown>>) =>
    set({ params: { ...draft.params, [draft.strategy]: { ...params, ...values } } });
  const plan = prediction.data?.plan;
  const spec = prediction.data?.report.spec;
  const go = () =>
    request &&
    start.mutate(request, {
      onSuccess: ({ id }) => {
        remember(draft);
        navigate(`/runs/${id}`);
      },
    });

  return (
    <div className={classes.columns}>
      <div className={classes.form}>
        <Section title="Showcase" inline>
          <ShowcasePicker showcases={showcases} chosen={showcase} onChoose={onShowcase} />
        </Section>
        <Section {...state('Cluster')}>
          <ClusterPicker
            clusters={clusters}
            clusterId={draft.cluster_id}
            frozen={draft.cluster}
            earlier={initial.cluster}
            about={showcase ? 'the cluster of the showcase' : 'as it was in the earlier run'}
            onChoose={(cluster_id, frozen) => set({ cluster_id, cluster: frozen })}
          />
        </Section>
        <Section {...state('Model')}>
          <ModelPicker
            models={catalogue.models}
            model={draft.model}
            randomWeights={draft.randomWeights}
            onModel={(name) => set({ model: name, randomWeights: false, ...OF_ONE_MODEL })}
            onRandomWeights={(randomWeights) => set({ randomWeights })}
            bits={{ weight_bits: draft.weight_bits, activation_bits: draft.activation_bits }}
            onBits={set}
          />
          <DraftPicker
            models={catalogue.models}
            model={model}
            draft={draft}
            error={errorOf('draft_model')}
            onDraft={set}
          />
        </Section>
        <Section
          {...state('Strategy')}
          about={
            !planned && (
              <BestPlanner
                row={advised.advice?.rows.find((each) => each.strategy === draft.strategy)}
                onPlan={() => setParams({ planner: 'best' })}
              />
            )
          }
        >
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
          <NotOffered sentences={elsewhere} />
        </Section>
        {strategy && paramNames.length > 0 && (
          <FoldedSection
            key={`parameters of ${strategy.name}`}
            {...state('Parameters')}
            about={paramsText(draft)}
          >
            <SchemaForm
              key={strategy.name}
              schema={strategy.params_schema}
              values={draft.params[strategy.name] ?? {}}
              onChange={(values) => set({ params: { ...draft.params, [strategy.name]: values } })}
              errorOf={(key) => errorOf(`params.${key}`)}
              deviceNames={cluster?.devices.map((device) => device.name) ?? []}
            />
          </FoldedSection>
        )}
        {strategy && cluster && (
          <Section {...state('Plan')} inline={!byHand}>
            <PlanEditor
              key={strategy.name}
              value={byHand}
              onChange={(value) => setParams({ plan: value })}
              editable={plan?.strategy === strategy.name ? prediction.data?.editable : undefined}
              report={prediction.error ? undefined : prediction.data?.report}
              own={own.error ? undefined : own.data?.report}
              refusal={prediction.error ? whyNot(prediction.error, told, 'Plan') : null}
              begin={editsPlan && initial.strategy === strategy.name}
              devices={cluster.devices}
              waiting={prediction.waiting}
            />
          </Section>
        )}
        <Section {...state('Workload')}>
          <WorkloadForm draft={draft} model={model} set={set} setWork={setWork} errorOf={errorOf} />
        </Section>
        <FoldedSection
          {...state('Scenario')}
          about={scenarioText(draft)}
          open={initial.scenario.changes.length > 0}
        >
          <ScenarioForm draft={draft} cluster={cluster} set={set} />
        </FoldedSection>
        <FoldedSection {...state('Execution')} about={executionText(draft)} key={`${bound}`} open={bound}>
          <ExecutionForm
            draft={draft}
            bound={bound}
            played={played}
            set={set}
            setWork={setWork}
            errorOf={errorOf}
          />
        </FoldedSection>
        <FoldedSection {...state('Labels')} about="name, tags and notes, to find the run again">
          <LabelsForm draft={draft} set={set} errorOf={errorOf} />
        </FoldedSection>
        {plan && spec && !prediction.error && (
          <FoldedSection title="Allocation" about="what each device holds and computes under this plan">
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
          </FoldedSection>
        )}
      </div>
      <aside className={classes.aside}>
        <Button
          size="md"
          leftSection={<IconPlayerPlay size={18} />}
          onClick={go}
          loading={start.isPending || start.isSuccess}
          disabled={!request || unable}
          data-testid="start-run"
        >
          Start the run
        </Button>
        <Button
          variant="default"
          leftSection={<IconFlask size={16} />}
          component={Link}
          to="/experiments/new"
          state={{ run: draft }}
          data-testid="experiment-from-draft"
        >
          Vary it in an experiment
        </Button>
        {start.error && <ErrorPanel title="Not started" message={whyNot(start.error, told)} />}
        <PredictionPanel
          {...prediction}
          missing={lacking}
          refused={prediction.error ? (told?.section ?? null) : null}
          onRetry={() => prediction.retry()}
        />
        <WhyPlan request={request} report={prediction.error ? undefined : prediction.data?.report} />
      </aside>
    </div>
  );
}

/** The sentence of a refusal, or in which section it stands; `here` is the section that asks. */
function whyNot(error: Error, told: Refusal | null, here?: SectionTitle): string {
  return told && told.section !== here ? `See the reason under ${told.section}.` : sentence(error);
}

/** How many of the strategy's parameters are not its defaults. */
function paramsText({ params, strategy }: Draft): string {
  const set = Object.keys(params[strategy] ?? {}).filter((key) => key !== 'plan');
  return set.length === 0 ? 'the defaults' : `set: ${set.map((key) => key.replaceAll('_', ' ')).join(', ')}`;
}

function scenarioText({ scenario }: Draft): string {
  const count = scenario.changes.length;
  return count === 0
    ? 'no changes at set times; you can make some live'
    : `${count} ${count === 1 ? 'change' : 'changes'} at set times`;
}

/** The same run as the strategy plans it by itself. */
function withoutPlan(request: RunRequest): RunRequest {
  return { ...request, params: { ...request.params, plan: null } };
}
