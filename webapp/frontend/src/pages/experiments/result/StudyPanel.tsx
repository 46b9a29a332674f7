import { Badge, Button, Group, Text } from '@mantine/core';
import { IconPlayerPlay } from '@tabler/icons-react';
import { useMetrics } from '@/api/queries';
import { DataTable } from '@/components/DataTable';
import { Panel } from '@/components/Panel';
import type { StudyLine, StudyOrigin, StudyResults, StudyValue } from '@/experiment/data/answers';
import type { ExperimentDocument } from '@/experiment/data/types';
import { metricText } from '@/format/metrics';
import { outcomeText } from '@/format/words';
import { coordinateColumns } from './coordinateColumns';

interface Props {
  study: StudyOrigin;
  results: StudyResults;
  experiment: ExperimentDocument;
  /** The metric that the table shows. */
  metric: string;
  /** undefined: this person may not, or all is asked for. */
  onRepeat?: () => void;
  isStarting?: boolean;
}

const STEP = 50;
const COLOR: Record<StudyLine['verdict'], string> = {
  same: 'teal',
  differs: 'red',
  'no interval': 'gray',
  'not repeated': 'gray',
};

/** The results that came with an imported study, as its authors', beside those of the same runs here. */
export function StudyPanel({ study, results, experiment, metric, onRepeat, isStarting }: Props) {
  const known = useMetrics().find(({ name }) => name === metric);
  const { lines, told } = results;
  const text = (value: StudyValue | null) => valueText(value, metric, known?.unit ?? '');
  return (
    <Panel
      title="Results of the study"
      about={`${lines.length} rows, computed elsewhere`}
      testId="study"
      flush
      extra={
        onRepeat && (
          <Button
            size="xs"
            variant="default"
            leftSection={<IconPlayerPlay size={14} />}
            loading={isStarting}
            onClick={onRepeat}
            title="Compute the same points here, and compare"
            data-testid="repeat-study"
          >
            Repeat
          </Button>
        )
      }
    >
      <Text size="sm" px="md" pt="xs" pb={4} c="dimmed" data-testid="study-origin">
        {originText(study)}
      </Text>
      <Text size="sm" px="md" pb="xs" data-testid="study-told">
        {told.length > 0
          ? told.join(' ')
          : `Nothing is computed here yet${onRepeat ? ': Repeat computes the same points' : ''}.`}
      </Text>
      <DataTable
        flush
        minWidth={640}
        maxHeight={420}
        verticalSpacing={5}
        step={STEP}
        rows={lines}
        keyOf={(_, at) => at}
        testId={(_, at) => `study-row-${at}`}
        columns={[
          ...coordinateColumns(experiment),
          { head: 'World', cell: ({ world }) => world },
          { head: `${known?.title ?? metric} in the study`, right: true, cell: ({ theirs }) => text(theirs) },
          { head: 'Here', right: true, cell: ({ ours }) => text(ours) },
          { head: 'Compared', cell: (line) => <Decided line={line} /> },
        ]}
      />
    </Panel>
  );
}

function Decided({ line }: { line: StudyLine }) {
  const title = useMetrics().find(({ name }) => name === line.metric)?.title ?? line.metric;
  return (
    <Group gap={8} wrap="nowrap">
      <Badge size="sm" variant="light" color={COLOR[line.verdict]}>
        {line.verdict}
      </Badge>
      {title && (
        <Text size="xs" c="dimmed">
          {title}: {line.study} in the study, {line.repeated} here
        </Text>
      )}
    </Group>
  );
}

function valueText(value: StudyValue | null, metric: string, unit: string): string {
  if (value === null) return '–';
  if (value.outcome !== 'finished') return outcomeText(value.outcome);
  return metricText(value.metrics[metric] ?? null, unit);
}

/** Whose the results are: the machine, its version, and when. */
function originText({ file, packed_on, licence, environment, imported_at }: StudyOrigin): string {
  const { edgeloom, processor, cores, kernel } = environment;
  const machine = [
    processor,
    cores && `${cores} cores`,
    kernel && `kernel ${kernel}`,
    edgeloom && `EdgeLoom ${edgeloom}`,
  ];
  const imported = new Date(imported_at).toLocaleDateString('en', { dateStyle: 'medium' });
  const parts = [`packed on ${packed_on}`, ...machine, licence && `licence ${licence}`];
  return `${file}, imported on ${imported}: ${parts.filter(Boolean).join(', ')}.`;
}
