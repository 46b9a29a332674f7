import { Accordion, ActionIcon, CopyButton, Table, Text, Tooltip } from '@mantine/core';
import { IconCheck, IconCopy } from '@tabler/icons-react';
import type { RunDetail } from '@/api/types';
import { seconds } from '@/format/units';
import { Panel } from '@/components/Panel';
import classes from './report.module.css';

/** The inputs that determine this run (spec, plan, scenario, seed) and the versions that ran it. */
export function Frozen({ run }: { run: RunDetail }) {
  const { report } = run;
  const sections: [string, string, unknown][] = [
    ['spec', 'Spec', run.spec],
    ['plan', 'Plan', report?.plan ?? run.plan],
    ['scenario', 'Scenario, live changes included', report?.scenario ?? run.spec.scenario],
  ];
  return (
    <Panel title="Frozen inputs" about="as the run used them" testId="frozen">
      <Accordion
        multiple
        variant="separated"
        chevronPosition="left"
        classNames={{ content: classes.frozenContent }}
      >
        {sections
          .filter(([, , value]) => value !== null)
          .map(([id, title, value]) => (
            <Accordion.Item key={id} value={id} data-testid={`frozen-${id}`}>
              <Accordion.Control>
                <Text size="sm" fw={500}>
                  {title}
                </Text>
              </Accordion.Control>
              <Accordion.Panel>
                <Json id={id} value={value} />
              </Accordion.Panel>
            </Accordion.Item>
          ))}
        <Accordion.Item value="made-with" data-testid="frozen-versions">
          <Accordion.Control>
            <Text size="sm" fw={500}>
              Versions, seed, dilation and set-up times
            </Text>
          </Accordion.Control>
          <Accordion.Panel>
            <Facts rows={factsOf(run)} />
          </Accordion.Panel>
        </Accordion.Item>
      </Accordion>
    </Panel>
  );
}

function Json({ id, value }: { id: string; value: unknown }) {
  const text = JSON.stringify(value, null, 2);
  return (
    <div className={classes.json}>
      <CopyButton value={text}>
        {({ copied, copy }) => (
          <Tooltip label={copied ? 'Copied' : 'Copy'}>
            <ActionIcon
              variant="default"
              className={classes.copy}
              onClick={copy}
              aria-label={`Copy the ${id}`}
              data-testid={`copy-${id}`}
            >
              {copied ? <IconCheck size={16} /> : <IconCopy size={16} />}
            </ActionIcon>
          </Tooltip>
        )}
      </CopyButton>
      <pre className={classes.pre}>{text}</pre>
    </div>
  );
}

function Facts({ rows }: { rows: [string, string][] }) {
  return (
    <Table verticalSpacing={4} fz="sm" w="auto">
      <Table.Tbody>
        {rows.map(([name, value]) => (
          <Table.Tr key={name}>
            <Table.Td c="dimmed">{name}</Table.Td>
            <Table.Td className="mono">{value}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

function factsOf({ report, spec }: RunDetail): [string, string][] {
  const rows: [string, string][] = [
    ['seed', String(report?.seed ?? spec.seed)],
    ['dilation D', report ? `${report.dilation} (requested: ${spec.dilation})` : String(spec.dilation)],
  ];
  if (!report) return rows;
  for (const [name, version] of Object.entries(report.versions)) rows.push([name, version]);
  for (const [step, value] of Object.entries(report.timings)) {
    if (typeof value === 'number') rows.push([`${step.replaceAll('_', ' ')} took`, seconds(value)]);
  }
  return rows;
}
