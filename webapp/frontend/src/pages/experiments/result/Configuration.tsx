import { Table, Text } from '@mantine/core';
import { Panel } from '@/components/Panel';
import { paramText } from '@/format/metrics';
import type { StoredExperiment } from '@/experiment/data/answers';
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
      values.map(({ label, value }) => label || String(value)).join(', '),
    ]),
    ['seeds', seeds.join(', ')],
    ...flat(base).filter(([, value]) => value !== '–'),
    ['code version', stored.code_version],
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

/** Fields of the base one level deep; a cluster is called by its name. */
function flat(base: Record<string, unknown>): [string, string][] {
  return Object.entries(base).flatMap(([key, value]): [string, string][] => {
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      return [[key, paramText(key, value)]];
    if ('name' in value) return [[key, String(value.name)]];
    return Object.entries(value).map(([inner, item]) => [`${key}.${inner}`, paramText(inner, item)]);
  });
}
