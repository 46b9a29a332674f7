import { Table, Text } from '@mantine/core';
import { Panel } from '@/components/Panel';
import { fieldText, paramText } from '@/format/metrics';
import { capital } from '@/format/words';
import type { StoredExperiment } from '@/experiment/data/answers';
import { coordinateOf, labelOf } from '@/experiment/data/design';
import type { ExperimentDocument } from '@/experiment/data/types';
import classes from './result.module.css';

/** What all points share, and what varies. */
export function Configuration({
  experiment,
  stored,
}: {
  experiment: ExperimentDocument;
  stored: StoredExperiment;
}) {
  const { base, factors, seeds } = experiment;
  const rows: [string, string][] = [
    ...factors.map(({ name, title, values }): [string, string] => [
      title || name,
      values.map((level) => labelOf(factors, name, coordinateOf(level))).join(', '),
    ]),
    ['Seeds', seeds.join(', ')],
    ...flat(base).filter(([, value]) => value !== '–'),
    ['Code version', stored.code_version],
  ];
  return (
    <Panel
      title="Configuration"
      about="what varies first, then what all points share"
      testId="configuration"
      flush
    >
      <Table className={classes.table} verticalSpacing={5}>
        <Table.Tbody>
          {rows.map(([name, value]) => (
            <Table.Tr key={name}>
              <Table.Th scope="row" w={260}>
                {name}
              </Table.Th>
              <Table.Td>
                <Text size="sm" lineClamp={2} title={value}>
                  {value}
                </Text>
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Panel>
  );
}

/** Fields of the base one level deep, by their names in words; a cluster is called by its own. */
function flat(base: Record<string, unknown>): [string, string][] {
  return Object.entries(base).flatMap(([key, value]): [string, string][] => {
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      return [[capital(fieldText(key)), paramText(key, value)]];
    if ('name' in value) return [[capital(fieldText(key)), String(value.name)]];
    return Object.entries(value).map(([inner, item]) => [capital(fieldText(inner)), paramText(inner, item)]);
  });
}
