import { expect, it } from 'vitest';
import { trialLine } from './Programs';
import { proofText } from './ServicePanel';

it('says of the answers only what was checked', () => {
  const found = { checked: true, ok: true, why: '' } as Parameters<typeof proofText>[1];
  expect(proofText(false, undefined)).toMatch(/^Not checked yet/);
  expect(proofText(true, undefined)).toMatch(/^No answer was compared/);
  expect(proofText(true, found)).toMatch(/^Checked/);
  expect(proofText(true, { ...found!, ok: false, why: 'the tokens differ' })).toMatch(/the tokens differ\.$/);
  expect(proofText(true, { ...found!, ok: null })).toMatch(/lossy/);
});

it('gives a line whose body a shell passes on as it is', () => {
  const body = trialLine('http://host:8000/v1', 12).split(/-d /)[1]!;
  expect(JSON.parse(body.slice(1, -1))).toEqual({
    model: '12',
    messages: [{ role: 'user', content: 'Hello' }],
  });
  expect(body.slice(1, -1)).not.toContain("'");
});
