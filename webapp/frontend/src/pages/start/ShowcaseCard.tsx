import { Anchor, Button, Card, Group, Text } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import { IconPlayerPlay } from '@tabler/icons-react';
import { Link } from '@/components/navigation';
import { sentence } from '@/api/client';
import { command } from '@/api/command';
import { useClusters, useMayWrite, useRuns } from '@/api/queries';
import type { Showcase } from '@/api/types';
import { ClusterPicture } from '@/cluster/ClusterPicture';
import { ErrorPanel } from '@/components/ErrorPanel';
import { maybe, seconds, three } from '@/format/units';
import { Expected } from './Expected';
import classes from './start.module.css';
import { useStart } from './useStart';

/** A card as narrow as this shows its large picture in a smaller format, so that its labels stay legible. */
const NARROW = '(max-width: 520px)';

interface Props {
  showcase: Showcase;
  /** large: with a labelled picture of the cluster; brief: only what it is called. */
  size: 'large' | 'usual' | 'brief';
}

/** A showcase: what one will see and why, what to expect and what it took, and the run in one click. */
export function ShowcaseCard({ showcase, size }: Props) {
  const mayWrite = useMayWrite();
  const { name, title, look_for, place, request, emulated, to_fetch } = showcase;
  const { go, busy, refused } = useStart(request);
  const cluster = request.cluster;
  const drawn = useClusters().data?.find((row) => row.name === cluster?.name);
  const runIt = place === 'demo' ? 'start-demo' : `start-showcase-${name}`;
  const isNarrow = useMediaQuery(NARROW, false, { getInitialValueInEffect: false });
  const compact = size !== 'large';
  const [width, height] = compact ? [360, 110] : isNarrow ? [420, 230] : [560, 230];
  return (
    <Card padding={0} className={classes.showcase} data-testid={`showcase-${name}`}>
      {size !== 'brief' && cluster && (
        <div className={classes.picture}>
          <ClusterPicture
            spec={cluster}
            layout={drawn?.layout}
            width={width}
            height={height}
            labels={!compact}
          />
        </div>
      )}
      <div className={classes.words}>
        {size === 'brief' && (
          <Text size="xs" c="dimmed">
            {request.strategy} with {request.model} on {cluster?.name}
          </Text>
        )}
        <Text fw={600} size={size === 'brief' ? 'sm' : 'md'}>
          {title}
        </Text>
        {size !== 'brief' && (
          <>
            <Text size="sm">{look_for}</Text>
            <Expected showcase={showcase} />
            <Took showcase={showcase} />
            <Text size="xs" c="dimmed">
              {cluster?.description} {request.strategy} with {request.model}, {paceText(request)}.
            </Text>
            {to_fetch && (
              <Text size="xs" c="dimmed" data-testid="to-fetch">
                {request.model} only goes on with texts like those that it was trained on. {to_fetch} answers
                questions, and this page runs it once it is here: the first start fetches it beside all else,
                and so does <code>{command(`models fetch ${to_fetch}`)}</code>.
              </Text>
            )}
          </>
        )}
        {refused && <ErrorPanel message={sentence(refused)} />}
        {mayWrite && (
          <Group gap="xs" mt="auto" pt="xs">
            {emulated && (
              <Button
                size={compact ? 'xs' : 'sm'}
                leftSection={<IconPlayerPlay size={15} />}
                onClick={go}
                loading={busy}
                data-testid={runIt}
              >
                {compact ? 'Run it' : 'Run it now'}
              </Button>
            )}
            <Button
              size={compact ? 'xs' : 'sm'}
              variant={emulated ? 'default' : 'filled'}
              component={Link}
              to={`/runs/new?showcase=${name}`}
              data-testid={`open-showcase-${name}`}
            >
              {emulated ? 'Settings' : 'Predict it'}
            </Button>
          </Group>
        )}
      </div>
    </Card>
  );
}

function paceText({ dilation }: Showcase['request']): string {
  return typeof dilation === 'number'
    ? `shown ${three(dilation)} times slower than real time`
    : 'at the speed of the boards, if this computer can keep up';
}

/** What the newest finished run of a showcase took whose times are valid; nothing before there is one. */
function Took({ showcase }: { showcase: Showcase }) {
  const last = useRuns().data?.find(
    (run) => run.name === showcase.title && run.status === 'finished' && run.valid !== false,
  );
  if (!last) return null;
  const { latency_s, ttft_s } = last.figures;
  return (
    <Text size="sm" data-testid={`took-${showcase.name}`}>
      When it last ran it took <b>{maybe(latency_s, seconds)}</b>
      {ttft_s !== undefined && `, ${seconds(ttft_s)} to the first token`}:{' '}
      <Anchor component={Link} to={`/runs/${last.id}`} size="sm">
        run {last.id}
      </Anchor>
      .
    </Text>
  );
}
