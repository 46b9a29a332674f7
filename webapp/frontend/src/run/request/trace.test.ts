import { describe, expect, it } from 'vitest';
import { parseTrace } from './trace';

describe('a trace of requests', () => {
  it('is read in any order of its columns and sorted by time', () => {
    const found = parseTrace('new_tokens,at_s,prompt_tokens\n8,2.5,16\n4,0,32\n\n');
    expect(found).toEqual([
      { at_s: 0, prompt_tokens: 32, new_tokens: 4 },
      { at_s: 2.5, prompt_tokens: 16, new_tokens: 8 },
    ]);
  });

  it.each([
    ['time,tokens\n1,2', 'The columns are time, tokens, expected at_s, prompt_tokens, new_tokens.'],
    ['at_s,prompt_tokens,new_tokens\n', 'The file has no line below its columns.'],
    ['at_s,prompt_tokens,new_tokens\n0,4,4\n1,0,4', 'Line 3: expected a time in seconds and two numbers'],
    ['at_s,prompt_tokens,new_tokens\n-1,4,4', 'Line 2: expected a time'],
    ['at_s,prompt_tokens,new_tokens\n1,,4', 'Line 2: expected a time'],
    ['at_s,prompt_tokens,new_tokens\n1,4.5,4', 'Line 2: expected a time'],
  ])('says what is wrong with %j', (text, sentence) => {
    expect(parseTrace(text)).toContain(sentence);
  });
});
