import { ScrollArea, SegmentedControl, Select } from '@mantine/core';
import { memo, useEffect, useRef, useState, type ReactNode } from 'react';
import type { RunSpec } from '@/api/types';
import { seconds } from '@/format/units';
import type { Token } from '@/run/data/runData';
import type { ServedRequest } from '@/run/data/service';
import { Panel } from '@/components/Panel';
import { requestOf, requestsOf, textOf } from '@/run/data/tokens';
import { samplingWords } from '@/run/data/sampling';
import classes from './panels.module.css';

interface Props {
  spec: RunSpec;
  tokens: readonly Token[];
  /** The requests that people sent while the run went on. */
  served?: readonly ServedRequest[];
  /** Whether more tokens may come: then the newest one is highlighted. */
  live: boolean;
  /** What stands around the text; without it a panel as high as the text. */
  frame?: (props: FrameProps) => ReactNode;
}

interface FrameProps {
  title: string;
  testId: string;
  about: ReactNode;
  extra: ReactNode;
  children: ReactNode;
}

/** A prompt that ends a sentence stands on a line of its own. */
const ENDS = /[.!?]\s*$/;

/** The prompt, dimmed, and the generated text, token by token. */
export function TokenText({ spec, tokens, served, live, frame: Frame }: Props) {
  const requests = requestsOf(tokens);
  const [chosen, setChosen] = useState<number | null>(null);
  const newest = tokens.at(-1)?.request ?? 0;
  const request = chosen ?? (live ? newest : (requests[0] ?? 0));
  const shown = tokens.filter((token) => token.request === request);
  const { prompt, newTokens: expected } = requestOf(spec, request, served);
  const drawn = samplingWords(spec);
  const last = live && shown.length < expected ? shown.length - 1 : -1;
  const box = useRef<HTMLDivElement>(null);
  const count = shown.length;
  useEffect(() => {
    // Scroll only this box, never the page.
    if (live && count > 0 && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [live, count]);
  const frame = {
    title: 'Generated text',
    testId: 'generated',
    about: (
      <>
        <span data-testid="token-count">{`${shown.length} of ${expected} tokens`}</span>
        {drawn && <span data-testid="sampled">{`, ${drawn}`}</span>}
      </>
    ),
    extra: <RequestChoice requests={requests} value={request} onChange={setChosen} />,
  };
  const text = (
    <p className={classes.text} data-testid="generated-text" aria-live="off">
      <span className={classes.prompt}>{prompt}</span>
      {ENDS.test(prompt) && <br />}
      {chunksOf(shown).map((tokens, at) => (
        <Chunk key={`${request} ${at}`} tokens={tokens} newest={last - at * CHUNK} />
      ))}
      {live && shown.length < expected && <span className={classes.caret} />}
    </p>
  );
  if (Frame) {
    return (
      <Frame {...frame}>
        <div ref={box} className={classes.filled}>
          {text}
        </div>
      </Frame>
    );
  }
  return (
    <Panel {...frame}>
      <ScrollArea.Autosize mah={240} type="auto" viewportRef={box}>
        {text}
      </ScrollArea.Autosize>
    </Panel>
  );
}

/** Tokens that are laid out together: while text grows, only its last chunk is another one. */
const CHUNK = 100;

function chunksOf(tokens: readonly Token[]): Token[][] {
  const chunks: Token[][] = [];
  for (let at = 0; at < tokens.length; at += CHUNK) chunks.push(tokens.slice(at, at + CHUNK));
  return chunks;
}

/** `newest`: which of the tokens is highlighted, if it is one of these. */
const Chunk = memo(
  function Chunk({ tokens, newest }: { tokens: readonly Token[]; newest: number }) {
    return tokens.map((token, index) => (
      <span
        key={token.index}
        className={`${classes.token} ${index === newest ? classes.newest : ''}`}
        title={`token ${token.index}: ${seconds(token.latency_s)}`}
      >
        {textOf(token)}
      </span>
    ));
  },
  (one, other) =>
    one.tokens.length === other.tokens.length &&
    one.tokens[0] === other.tokens[0] &&
    one.newest === other.newest,
);

function RequestChoice(props: { requests: number[]; value: number; onChange: (request: number) => void }) {
  const { requests, value, onChange } = props;
  if (requests.length < 2) return null;
  const data = requests.map((request) => ({ value: String(request), label: `Request ${request}` }));
  const change = (text: string | null) => text !== null && onChange(Number(text));
  if (requests.length <= 4) {
    return (
      <SegmentedControl
        size="xs"
        data={data}
        value={String(value)}
        onChange={change}
        data-testid="request-choice"
      />
    );
  }
  return (
    <Select
      size="xs"
      w={116}
      data={data}
      value={String(value)}
      onChange={change}
      allowDeselect={false}
      data-testid="request-choice"
    />
  );
}
