import { ActionIcon, Text, Tooltip } from '@mantine/core';
import { IconX } from '@tabler/icons-react';
import { memo } from 'react';
import { seconds } from '@/format/units';
import type { ServedRequest } from '@/run/data/service';
import { withdraw } from '@/run/feed/commands';
import classes from './service.module.css';

interface Props {
  runId: number;
  request: ServedRequest;
  /** Changes with every event: `request` is the same object. */
  version: number;
  /** Requests before this one. */
  ahead: number;
  mayCancel: boolean;
}

/** One prompt and its answer, with the times that its sender saw. */
export const Exchange = memo(function Exchange({ runId, request, ahead, mayCancel }: Props) {
  const open = request.state === 'waiting' || request.state === 'working';
  return (
    <article className={classes.exchange} data-testid="exchange" data-state={request.state}>
      <div className={classes.prompt}>
        <Text size="xs" c="dimmed">
          {request.by || 'somebody'}
        </Text>
        <p>{request.prompt || `${request.promptTokens} token ids`}</p>
      </div>
      <p className={classes.answer} data-testid="answer">
        {request.answer}
        {open && <span className={classes.caret} aria-hidden />}
      </p>
      <div className={classes.facts}>
        <Text size="xs" c="dimmed" data-testid="exchange-facts">
          {factsOf(request, ahead)}
        </Text>
        {open && mayCancel && (
          <Tooltip label="Cancel this request">
            <ActionIcon
              size="xs"
              variant="subtle"
              color="gray"
              aria-label={`Cancel request ${request.request}`}
              onClick={() => void withdraw(runId, request.id)}
            >
              <IconX size={13} />
            </ActionIcon>
          </Tooltip>
        )}
      </div>
    </article>
  );
});

/** Where the request is, how far, and its times: all in virtual seconds since it was taken. */
function factsOf(request: ServedRequest, ahead: number): string {
  const { token_s, accepted_s, newTokens } = request;
  if (request.state === 'waiting') return ahead ? `waiting, ${ahead} before it` : 'waiting, next';
  const parts = [`${token_s.length} of at most ${newTokens} tokens`];
  const [first] = token_s;
  const last = token_s.at(-1);
  if (first !== undefined) parts.push(`first after ${seconds(first - accepted_s)}`);
  if (first !== undefined && last !== undefined && token_s.length > 1)
    parts.push(`then ${seconds((last - first) / (token_s.length - 1))} each`);
  if (request.state === 'cancelled') parts.push(request.reason || 'cancelled');
  return parts.join(' · ');
}
