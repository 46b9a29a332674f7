import { Badge, Button, Group, Table, Text } from '@mantine/core';
import { IconPlayerPlay } from '@tabler/icons-react';
import { useState } from 'react';
import { useMetrics } from '@/api/queries';
import { Panel } from '@/components/Panel';
import type { StudyLine, StudyOrigin, StudyResults, StudyValue } from '@/experiment/data/answers';
import { labelOf } from '@/experiment/data/design';
import type { ExperimentDocument } from '@/experiment/data/types';
import { metricText } from '@/format/metrics';
import { outcomeText } from '@/format/words';
import classes from './result.module.css';

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
  const [limit, setLimit] = useState(STEP);
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
      <Table.ScrollContainer minWidth={640} mah={420}>
        <Table className={classes.table} verticalSpacing={5} stickyHeader>
          <Table.Thead>
            <Table.Tr>
              {experiment.factors.map(({ name, title }) => (
                <Table.Th key={name}>{title || name}</Table.Th>
              ))}
              {experiment.seeds.length > 1 && <Table.Th>Seed</Table.Th>}
              <Table.Th>World</Table.Th>
              <Table.Th ta="right">{known?.title ?? metric} in the study</Table.Th>
              <Table.Th ta="right">Here</Table.Th>
              <Table.Th>Compared</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {lines.slice(0, limit).map((line, at) => (
              <Table.Tr key={at} data-testid={`study-row-${at}`}>
                {experiment.factors.map(({ name }) => (
                  <Table.Td key={name}>{labelOf(experiment.factors, name, line.coordinates[name])}</Table.Td>
                ))}
                {experiment.seeds.length > 1 && <Table.Td>{line.seed}</Table.Td>}
                <Table.Td>{line.world}</Table.Td>
                <Table.Td ta="right">{text(line.theirs)}</Table.Td>
                <Table.Td ta="right">{text(line.ours)}</Table.Td>
                <Table.Td>
                  <Decided line={line} />
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
      {lines.length > limit && (
        <Button variant="subtle" fullWidth onClick={() => setLimit(limit + STEP)}>
          Show {Math.min(STEP, lines.length - limit)} more of {lines.length}
        </Button>
      )}
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
