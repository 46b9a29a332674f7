import { Card, Group, Text, ThemeIcon } from '@mantine/core';
import { IconCheck, IconMinus, IconWaveSine, IconX } from '@tabler/icons-react';
import type { Correctness, Fidelity } from '@/api/types';
import { percent } from '@/format/units';
import classes from './report.module.css';

interface Props {
  correctness: Correctness;
  fidelity: Fidelity;
}

/** Whether the result is right, and whether the emulation was what was asked for. */
export function Verdicts({ correctness, fidelity }: Props) {
  return (
    <div className={classes.halves}>
      <Verdict
        ok={correctness.ok}
        testId="verdict-correct"
        title={correctTitle(correctness)}
        icon={correctness.lossy && correctness.ok === null ? IconWaveSine : undefined}
        lines={correctLines(correctness)}
      />
      <Verdict
        ok={fidelity.valid}
        testId="verdict-valid"
        title={fidelity.valid === null ? 'Fidelity not measured' : fidelity.valid ? 'Valid' : 'Not valid'}
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
  icon?: typeof IconCheck | undefined;
}) {
  const { ok, title, lines, testId } = props;
  const color = ok === null ? 'gray' : ok ? 'green' : 'red';
  const Icon = props.icon ?? (ok === null ? IconMinus : ok ? IconCheck : IconX);
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
              {line}
            </Text>
          ))}
        </div>
      </Group>
    </Card>
  );
}

function correctTitle({ checked, ok, lossy }: Correctness): string {
  if (ok !== null) return ok ? 'Correct' : 'Not correct';
  return checked && lossy ? 'Lossy, as the method is' : 'Correctness not checked';
}

function correctLines(correctness: Correctness): string[] {
  const lines: string[] = [];
  if (correctness.top1_agreement !== null) {
    lines.push(
      `The reference would have chosen ${percent(correctness.top1_agreement)} of the same tokens, given those before them.`,
    );
  }
  if (correctness.kl_mean !== null) {
    lines.push(
      `Mean KL divergence from the reference ${correctness.kl_mean === 0 ? '0' : correctness.kl_mean.toPrecision(3)} nats per token.`,
    );
  }
  if (correctness.token_identical !== null) {
    lines.push(
      correctness.token_identical
        ? 'The same tokens as transformers generates on one device.'
        : 'Other tokens than transformers generates on one device.',
    );
  }
  if (correctness.max_rel_error !== null) {
    lines.push(
      `Largest relative error ${correctness.max_rel_error.toExponential(1)}, absolute ${correctness.max_abs_error?.toExponential(1) ?? '–'}.`,
    );
  }
  return correctness.why ? [...lines, correctness.why] : lines;
}

function validLines(fidelity: Fidelity): string[] {
  const parts: string[] = [];
  if (typeof fidelity.model_error_mean === 'number')
    parts.push(`operations took times ${percent(fidelity.model_error_mean)} off their device's model`);
  if (typeof fidelity.latency_error === 'number' && typeof fidelity.latency_limit === 'number')
    parts.push(
      `the latency is ${percent(fidelity.latency_error)} off its prediction (limit ±${percent(fidelity.latency_limit)})`,
    );
  if (fidelity.compute_error_mean !== null) {
    const worst =
      fidelity.compute_error_p95 === null
        ? ''
        : ` (95 % of them within ${percent(fidelity.compute_error_p95)})`;
    parts.push(`operations late by ${percent(fidelity.compute_error_mean)} on average${worst}`);
  }
  if (fidelity.link_error_max !== null)
    parts.push(`links within ${percent(fidelity.link_error_max)} of the asked rate`);
  if (fidelity.late_frac !== null) parts.push(`${percent(fidelity.late_frac)} of the operations overran`);
  const lines = parts.length > 0 ? [`${capital(parts.join(', '))}.`] : [];
  if (fidelity.backend) lines.push(`Links shaped by ${fidelity.backend}.`);
  return [...lines, ...fidelity.why, ...(fidelity.notes ?? [])];
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
