import { Card, Group, Text, ThemeIcon } from '@mantine/core';
import { IconCheck, IconMinus, IconWaveSine, IconX } from '@tabler/icons-react';
import type { Correctness, Fidelity } from '@/api/types';
import classes from './report.module.css';
import { correctLines, correctTitle, validLines, validTitle, withUnitsBound } from './verdicts';

interface Props {
  correctness: Correctness;
  fidelity: Fidelity;
}

/** Two cards: whether the result is correct, and whether the emulation agrees with the device models. */
export function Verdicts({ correctness, fidelity }: Props) {
  return (
    <div className={classes.halves}>
      <Verdict
        ok={correctness.ok}
        testId="verdict-correct"
        title={correctTitle(correctness)}
        lossy={correctness.checked && correctness.lossy && correctness.ok === null}
        lines={correctLines(correctness)}
      />
      <Verdict
        ok={fidelity.valid}
        testId="verdict-valid"
        title={validTitle(fidelity)}
        lines={validLines(fidelity)}
      />
    </div>
  );
}

function Verdict(props: {
  ok: boolean | null;
  title: string;
  lines: string[];
  testId: string;
  /** The answer is meant to differ: neither right nor wrong. */
  lossy?: boolean;
}) {
  const { ok, title, lines, testId, lossy = false } = props;
  const color = lossy ? 'yellow' : ok === null ? 'gray' : ok ? 'green' : 'red';
  const Icon = lossy ? IconWaveSine : ok === null ? IconMinus : ok ? IconCheck : IconX;
  return (
    <Card padding="sm" data-testid={testId} data-ok={String(ok)}>
      <Group gap="sm" wrap="nowrap" align="flex-start">
        <ThemeIcon color={color} variant="light" radius="xl" size={34}>
          <Icon size={20} stroke={2.4} />
        </ThemeIcon>
        <div>
          <Text fw={600}>{title}</Text>
          {lines.map((line) => (
            <Text key={line} size="sm" c="dimmed">
              {withUnitsBound(line)}
            </Text>
          ))}
        </div>
      </Group>
    </Card>
  );
}
