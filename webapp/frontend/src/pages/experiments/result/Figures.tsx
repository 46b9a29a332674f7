import { Button, Select } from '@mantine/core';
import { useState } from 'react';
import { useMetrics } from '@/api/queries';
import { sentence } from '@/api/client';
import { ErrorPanel } from '@/components/ErrorPanel';
import type { AnalysisAnswer, FigureAnswer, StoredExperiment } from '@/experiment/data/answers';
import { FIRST_VIEW, type View, viewOf } from '@/experiment/data/design';
import { useFigure } from '@/experiment/data/queries';
import type { ExperimentDocument } from '@/experiment/data/types';
import { ViewControls } from '../design/ViewControls';
import { FigurePanel } from '@/experiment/chart/FigurePanel';
import type { Selection } from '../selection';
import { nameAfter, useKeep } from './useKeep';

interface Props {
  stored: StoredExperiment;
  mayChange: boolean;
  experiment: ExperimentDocument;
  analysis: AnalysisAnswer | undefined;
  token: string;
  /** Axes that a person has chosen; null: a figure of the experiment. */
  view: View | null;
  onView: (view: View | null) => void;
  selection: Selection;
}

const OWN = '';

/** A figure of the experiment, or one with the axes that a person chooses. */
export function Figures({ stored, mayChange, experiment, analysis, token, view, onView, selection }: Props) {
  const [keep, isKeeping] = useKeep(stored);
  const [name, setName] = useState(experiment.figures[0]?.name ?? OWN);
  const metrics = useMetrics();
  const designed = experiment.figures.find((figure) => figure.name === name);
  const composed = view
    ? viewOf(experiment.factors, view)
    : designed
      ? null
      : viewOf(experiment.factors, FIRST_VIEW);
  const own = useFigure(stored.id, composed, token);
  const answer = composed ? own.data : analysis?.figures.find((figure) => figure.name === name);
  const shown = composed ?? designed ?? viewOf(experiment.factors, FIRST_VIEW);
  const start: View = view ?? {
    ...FIRST_VIEW,
    kind: shown.kind,
    metric: shown.metric,
    x: shown.x,
    series: shown.series,
    facet: shown.facet,
    logX: shown.log_x,
    logY: shown.log_y,
  };
  const choices = experiment.figures.map((figure) => ({
    value: figure.name,
    label: figure.title || figure.name,
  }));
  return (
    <>
      {own.isError && composed && <ErrorPanel title="No such figure" message={sentence(own.error)} />}
      <FigurePanel
        title={answer ? titleOf(answer) : 'Figure'}
        about="click marks or drag a box to choose points"
        data={answer}
        stale={composed !== null && own.isPlaceholderData}
        selected={selection.digests}
        onSelect={selection.select}
        height={430}
        extra={
          choices.length > 1 || view ? (
            <>
              {mayChange && composed && answer && (
                <Button
                  size="compact-xs"
                  variant="default"
                  loading={isKeeping}
                  title="Reports and exports have it, too"
                  onClick={() => {
                    const title = titleOf(answer);
                    const kept = { ...composed, name: nameAfter(title, experiment.figures), title };
                    keep({ figures: kept }, () => {
                      onView(null);
                      setName(kept.name);
                    });
                  }}
                  data-testid="keep-figure"
                >
                  Keep this figure
                </Button>
              )}
              <Select
                size="xs"
                w={220}
                aria-label="Figure"
                value={view ? OWN : name}
                allowDeselect={false}
                data={[...choices, { value: OWN, label: 'Axes of my choice' }]}
                onChange={(next) => {
                  if (next === null) return;
                  if (next === OWN) onView(start);
                  else {
                    onView(null);
                    setName(next);
                  }
                }}
                data-testid="choose-figure"
              />
            </>
          ) : undefined
        }
        controls={
          <ViewControls
            factors={experiment.factors}
            metrics={metrics}
            view={start}
            figure={shown}
            onView={onView}
          />
        }
      />
    </>
  );
}

/** The title of a figure; one that has none is called by its axes. */
function titleOf({ name, title, x, y }: FigureAnswer): string {
  return title && title !== name.replaceAll('-', ' ') ? title : `${y.title} by ${x.title.toLowerCase()}`;
}
