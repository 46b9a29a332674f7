import { Anchor, Badge, Center, Group, Loader, Stack, Text, UnstyledButton } from '@mantine/core';
import { IconChevronRight } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'react-router';
import { api, sentence } from '@/api/client';
import { ErrorPanel } from '@/components/ErrorPanel';
import { Page } from '@/components/Page';
import { Panel } from '@/components/Panel';
import classes from './reproductions.module.css';
import { NEARNESS, type Nearness, type Reproductions, shares } from './verdicts';

/** The page /experiments/reproductions: what of the papers' figures is reproduced, and why the rest is not. */
export function ReproductionsPage() {
  const query = useQuery({
    queryKey: ['reproductions'],
    queryFn: ({ signal }) => api.get<Reproductions>('/experiments/reproductions', signal),
    staleTime: Infinity,
  });
  return (
    <Page
      title="Reproductions"
      about={
        <>
          Every published figure of the five papers: predicted here, checked by a test, or left out with a reason.{' '}
          <Anchor component={Link} to="/experiments" size="sm" c="dimmed">
            all experiments
          </Anchor>
        </>
      }
    >
      {query.isError && <ErrorPanel message={sentence(query.error)} onRetry={() => query.refetch()} />}
      {query.isPending && (
        <Center mih={300}>
          <Loader type="dots" />
        </Center>
      )}
      {query.data && (
        <Stack gap={14}>
          <Key />
          {query.data.papers.map((paper) => (
            <Paper key={paper.paper} paper={paper} all={query.data} />
          ))}
          <LeftOut rows={query.data.others} />
        </Stack>
      )}
    </Page>
  );
}

function Key() {
  return (
    <Group gap="md" data-testid="verdict-key">
      {NEARNESS.map(({ name, color }) => (
        <span key={name} className={classes.key}>
          <span style={{ background: color }} />
          {name}
        </span>
      ))}
    </Group>
  );
}

function Paper({ paper, all }: { paper: Reproductions['papers'][number]; all: Reproductions }) {
  const experiments = all.experiments.filter((one) => one.paper === paper.paper);
  return (
    <Panel
      title={paper.title}
      testId={`paper-${paper.paper}`}
      flush
      extra={
        <Text size="xs" c="dimmed">
          {paper.figures} figures: {paper.in_experiments} in experiments, {paper.checked} checked by tests,{' '}
          {paper.left_out} left out
        </Text>
      }
    >
      {experiments.map((experiment) => (
        <Experiment key={experiment.name} experiment={experiment} />
      ))}
    </Panel>
  );
}

function Experiment({ experiment }: { experiment: Reproductions['experiments'][number] }) {
  const [open, setOpen] = useState(false);
  const { name, title, description, counts, figures, points, assumptions, code_versions, worlds } = experiment;
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
        <span className={classes.count}>{figures} figures</span>
      </UnstyledButton>
      {open && (
        <div className={classes.details}>
          {description && <Text size="sm">{description}</Text>}
          <Group gap={6} my={8}>
            {NEARNESS.filter((one) => (counts[one.name] ?? 0) > 0).map((one) => (
              <Badge key={one.name} variant="light" color="gray">
                {counts[one.name]} {one.name}
              </Badge>
            ))}
          </Group>
          {assumptions.length > 0 && (
            <>
              <Text size="sm" fw={500}>
                Assumed, because the paper does not say
              </Text>
              <ul>
                {assumptions.map((one) => (
                  <li key={one}>{one}</li>
                ))}
              </ul>
            </>
          )}
          <Text size="xs" c="dimmed">
            {points} points, {worlds.map((world) => (world === 'simulated' ? 'predicted' : world)).join(' and ')}, by version{' '}
            {code_versions.map((version) => version.slice(0, 12)).join(', ')}. From the command line:{' '}
            <span className="mono">./loom reproduce {name}</span>
          </Text>
        </div>
      )}
    </div>
  );
}

function Bar({ counts }: { counts: Partial<Record<Nearness, number>> }) {
  const parts = shares(counts);
  const text = parts.map(({ name, count }) => `${count} ${name}`).join(', ');
  return (
    <span className={classes.bar} role="img" aria-label={text} title={text}>
      {parts.map(({ name, percent, color }) => (
        <span key={name} style={{ width: `${percent}%`, background: color }} />
      ))}
    </span>
  );
}

function LeftOut({ rows }: { rows: Reproductions['others'] }) {
  return (
    <Panel title="Not in an experiment" about="none is left out silently" testId="left-out">
      <ul className={classes.reasons}>
        {rows.map(({ kind, reason, figures }) => (
          <li key={reason}>
            <b>{figures}</b> {kind}: {reason}
          </li>
        ))}
      </ul>
    </Panel>
  );
}
