import { Center, Loader, Text, UnstyledButton } from '@mantine/core';
import { IconChevronRight } from '@tabler/icons-react';
import { useState } from 'react';
import { sentence } from '@/api/client';
import { command } from '@/api/command';
import { ErrorPanel } from '@/components/ErrorPanel';
import type { ReproductionSummary } from '@/experiment/data/answers';
import { useReproduction } from '@/experiment/data/queries';
import { CopyButton } from '../CopyButton';
import classes from './reproductions.module.css';
import { shares } from './verdicts';
import { VerdictTable } from './VerdictTable';

/** One table or figure of a paper: its states as a bar, and below it everything else once it is opened. */
export function Reproduction({ summary }: { summary: ReproductionSummary }) {
  const [open, setOpen] = useState(false);
  const { name, title, counts, figures } = summary;
  return (
    <div className={classes.experiment}>
      <UnstyledButton
        className={classes.row}
        aria-expanded={open}
        onClick={() => setOpen(!open)}
        data-testid={`reproduction-${name}`}
      >
        <IconChevronRight size={15} className={classes.chevron} />
        <span className={classes.title}>{title || name}</span>
        <Bar counts={counts} />
        <span className={classes.count}>
          {figures} {figures === 1 ? 'figure' : 'figures'}
        </span>
      </UnstyledButton>
      {open && <Details summary={summary} />}
    </div>
  );
}

function Bar({ counts }: { counts: ReproductionSummary['counts'] }) {
  const parts = shares(counts);
  if (parts.length === 0) return <span className={classes.count}>not counted: all repeat others</span>;
  const text = parts.map(({ name, count }) => `${count} ${name}`).join(', ');
  return (
    <span className={classes.bar} role="img" aria-label={text} title={text}>
      {parts.map(({ name, percent, color }) => (
        <span key={name} style={{ width: `${percent}%`, background: color }} />
      ))}
    </span>
  );
}

function Details({ summary }: { summary: ReproductionSummary }) {
  const { name, description, points, assumptions, code_versions, worlds, repeats } = summary;
  const verdicts = useReproduction(name);
  return (
    <div className={classes.details} data-testid={`details-${name}`}>
      <div className={classes.head}>
        <Text size="sm">{description}</Text>
        <CopyButton name={name} />
      </div>
      {verdicts.isError && (
        <ErrorPanel message={sentence(verdicts.error)} onRetry={() => verdicts.refetch()} />
      )}
      {verdicts.isPending && (
        <Center mih={120}>
          <Loader type="dots" />
        </Center>
      )}
      {verdicts.data && <VerdictTable verdicts={verdicts.data} />}
      {repeats > 0 && (
        <Text size="sm" mt="sm">
          {repeats} of the figures {repeats === 1 ? 'repeats' : 'repeat'} another one by arithmetic and{' '}
          {repeats === 1 ? 'is' : 'are'} not counted.
        </Text>
      )}
      {assumptions.length > 0 && (
        <>
          <Text size="sm" fw={500} mt="sm">
            Assumptions
          </Text>
          <ul className={classes.assumptions}>
            {assumptions.map((one) => (
              <li key={one}>{one}</li>
            ))}
          </ul>
        </>
      )}
      <Text size="xs" c="dimmed" mt="sm">
        {points} points, {worlds.join(' and ')}, computed by version {code_versions.join(', ')}. From the
        command line: <code>{command(`reproduce ${name}`)}</code>
      </Text>
    </div>
  );
}
