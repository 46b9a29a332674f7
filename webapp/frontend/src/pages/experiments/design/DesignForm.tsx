import { Card, Group, NumberInput, Text, TextInput, Title } from '@mantine/core';
import { useViewportSize } from '@mantine/hooks';
import { type ReactNode, useState } from 'react';
import { ApiError, sentence } from '@/api/client';
import { useElsewhere, useMetrics, useSupports } from '@/api/queries';
import type { Catalogue, ClusterRow } from '@/api/types';
import { ErrorPanel } from '@/components/ErrorPanel';
import { NotOffered } from '@/components/NotOffered';
import { useOnce } from '@/components/useOnce';
import { pairOf } from '@/run/request/draft';
import {
  baseOf,
  type Design,
  factorsOf,
  lacks,
  newFactor,
  numPoints,
  titleOf,
  toExperiment,
  viewOf,
} from '@/experiment/data/design';
import type { StoredExperiment } from '@/experiment/data/answers';
import { useFactorOptions, usePreview } from '@/experiment/data/queries';
import { NotesPanel } from '../NotesPanel';
import { FigurePanel } from '@/experiment/chart/FigurePanel';
import { useSelection } from '../selection';
import { Base } from './Base';
import { Changes } from './Changes';
import { CellProblems } from './CellProblems';
import classes from './design.module.css';
import { EmulateBar } from './EmulateBar';
import { AddFactor, FactorCard, Suggested } from './FactorCard';
import { Methods } from './Methods';
import { Remedies } from './Remedies';
import { PreviewNumbers } from './PreviewNumbers';
import { ViewControls } from './ViewControls';

interface Props {
  initial: Design;
  /** The experiment that is edited; null: a new one. */
  stored: StoredExperiment | null;
  clusters: ClusterRow[];
  catalogue: Catalogue;
}

/** Pixels of the figure, and of all that stands above and below it on the page. */
const LEAST_HEIGHT = 250;
const AROUND = 445;

const SUGGESTED = ['rate', 'devices', 'prompt_tokens', 'model'];

/** What is varied at the left; at the right its size, the predicted figure, and what to emulate. */
export function DesignForm({ initial, stored: latest, clusters, catalogue }: Props) {
  // The version that was opened: the server refuses to overwrite a later one.
  const [stored] = useState(latest);
  const [design, setDesign] = useState(initial);
  const set = (patch: Partial<Design>) => setDesign((old) => ({ ...old, ...patch }));
  const { run, methods, factors } = design;
  const cluster = run.cluster ?? clusters.find((row) => row.id === run.cluster_id)?.spec ?? null;
  const model = catalogue.models.find((row) => row.name === run.model);
  const reasons = useSupports(pairOf(run)).data ?? {};
  const elsewhere = useElsewhere();
  const lacking = lacks(design, cluster);
  const experiment =
    lacking || !cluster ? null : toExperiment(design, cluster, model, stored?.experiment ?? null);
  const options = useFactorOptions(cluster ? baseOf(run, cluster, model) : null);
  const free = (options.data ?? []).filter(({ path }) => !factors.some(({ option }) => option.path === path));
  const metrics = useMetrics();
  const preview = usePreview(experiment);
  // What is wrong with a stored design stands above its figure.
  const isKnown = useOnce(!experiment || preview.data !== undefined || preview.error !== null);
  const selection = useSelection();
  const { height: viewport } = useViewportSize();
  const refusal = preview.error instanceof ApiError ? preview.error : null;
  const answer = preview.data?.figures[0];
  const add = (option: (typeof free)[number]) => set({ factors: [...factors, newFactor(option)] });
  return (
    <div className={classes.columns}>
      <div className={classes.form}>
        <Section title="Base">
          <Base
            run={run}
            cluster={cluster}
            clusters={clusters}
            models={catalogue.models}
            onRun={(patch) => set({ run: { ...run, ...patch } })}
          />
        </Section>
        <Section title="Changes during every run" about="their times, places and kinds can be factors">
          <Changes
            changes={run.scenario.changes}
            cluster={cluster}
            rows={preview.data?.rows ?? []}
            onChange={(changes) => set({ run: { ...run, scenario: { changes } } })}
          />
        </Section>
        <Section title="Strategies" about={methods.length > 0 ? `${methods.length} ticked` : undefined}>
          <Methods
            strategies={catalogue.strategies}
            methods={methods}
            reasons={reasons}
            onChange={(next) => set({ methods: next })}
            deviceNames={cluster?.devices.map(({ name }) => name) ?? []}
          />
          <NotOffered sentences={elsewhere} />
        </Section>
        <Section title="Factors" about="every combination is one point">
          {factors.map((factor, at) => (
            <FactorCard
              key={factor.option.path}
              factor={factor}
              error={refusal?.about(`factors[${at + 1}]`)}
              onChange={(next) => set({ factors: factors.with(at, next) })}
              onRemove={() => set({ factors: factors.filter((one) => one !== factor) })}
            />
          ))}
          <Group gap={8} mt={factors.length > 0 ? 'sm' : 0}>
            <Suggested
              options={SUGGESTED.flatMap((name) => free.find((option) => option.name === name) ?? [])}
              onAdd={add}
            />
            <div style={{ width: '100%' }}>
              <AddFactor options={free} onAdd={add} />
            </div>
          </Group>
          {options.error !== null && (
            <Text size="xs" c="red" mt={6} role="alert">
              {sentence(options.error)}
            </Text>
          )}
        </Section>
        <Section title="Repeats">
          <NumberInput
            size="xs"
            label="Seeds"
            description="A seed changes random prompts, random weights, loss and jitter. The figure shows the mean and its 95 % interval."
            min={1}
            max={100}
            allowDecimal={false}
            value={design.repeats}
            onChange={(next) => typeof next === 'number' && next >= 1 && set({ repeats: next })}
            data-testid="repeats"
          />
        </Section>
      </div>
      <div className={classes.result}>
        <Card padding="md">
          <Group justify="space-between" wrap="nowrap" align="center" gap="xl">
            <PreviewNumbers count={numPoints(design)} preview={preview.data} stale={preview.stale} />
            <TextInput
              size="xs"
              w={320}
              aria-label="Name of the experiment"
              placeholder={cluster ? titleOf(design, cluster) : 'Name'}
              value={design.title}
              maxLength={100}
              onChange={(event) => set({ title: event.currentTarget.value })}
              data-testid="design-title"
            />
          </Group>
          {lacking && (
            <Text size="sm" c="dimmed" data-testid="design-lacks">
              {lacking}
            </Text>
          )}
        </Card>
        {preview.error && !preview.stale && (
          <ErrorPanel
            title="Not predicted"
            message={sentence(preview.error)}
            onRetry={() => preview.retry()}
          />
        )}
        {experiment && preview.data && <CellProblems preview={preview.data} stale={preview.stale} />}
        {experiment && preview.data && (
          <NotesPanel notes={preview.data.notes} stale={preview.stale}>
            {!preview.stale && preview.data.notes.some(({ kind }) => kind !== 'same') && (
              <Remedies experiment={experiment} onRun={(changed) => set({ run: changed(run) })} />
            )}
          </NotesPanel>
        )}
        {isKnown && (
          <FigurePanel
            title="Prediction"
            height={Math.max(LEAST_HEIGHT, Math.min(390, viewport - AROUND))}
            about="click marks or drag a box to choose points"
            data={answer && experiment ? answer : undefined}
            nothing={
              experiment
                ? undefined
                : 'Tick strategies and add factors: the predictions of all points appear here.'
            }
            stale={preview.stale}
            selected={selection.digests}
            onSelect={selection.select}
            controls={
              <ViewControls
                factors={factorsOf(design)}
                metrics={metrics}
                view={design.view}
                figure={viewOf(factorsOf(design), design.view)}
                onView={(view) => set({ view })}
              />
            }
          />
        )}
        {experiment && preview.data && (
          <EmulateBar
            stored={stored}
            experiment={experiment}
            preview={preview.data}
            selection={selection}
            disabled={preview.stale}
          />
        )}
      </div>
    </div>
  );
}

function Section({ title, about, children }: { title: string; about?: string; children: ReactNode }) {
  return (
    <Card component="section" padding="md" aria-label={title}>
      <Group gap="xs" align="baseline" mb={8}>
        <Title order={2} fz={14}>
          {title}
        </Title>
        {about && (
          <Text size="xs" c="dimmed">
            {about}
          </Text>
        )}
      </Group>
      {children}
    </Card>
  );
}
