import { expect, it } from 'vitest';
import { pricesOf, withPrice } from './Prices';

it('takes a price back where its field is emptied, and keeps the others', () => {
  const prices = withPrice(withPrice({}, 'pi', 80), 'nano', 150);
  expect(prices).toEqual({ pi: 80, nano: 150 });
  expect(withPrice(prices, 'pi', '')).toEqual({ nano: 150 });
});

it('sends the prices of the boards in question alone, one of nothing among them', () => {
  expect(pricesOf({ pi: 80, desk: 0 }, [{ name: 'desk' }, { name: 'shelf' }])).toEqual({ desk: 0 });
});
