// Filters as an expression of kith's `where` (docs/search.md). A filter is kept per column:
//   {is: ['tern', 'gull'], has: 'beach'}   text: one of these values, and contains this
//   {min: '2019', max: '2024'}             numbers, as they were typed

// Single quotes; a quote inside is doubled.
export const quote = (text) => `'${text.replaceAll("'", "''")}'`;

// A pattern of `like` that finds this text anywhere: its wildcards stand for themselves.
export const pattern = (text) => `%${text.replace(/[\\%_]/g, '\\$&')}%`;

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
export const isNumber = (text) => NUMBER.test(text.trim());

function comparisons(column, filter) {
  const parts = [];
  const is = filter.is ?? [];
  if (is.length === 1) parts.push(`${column} = ${quote(is[0])}`);
  if (is.length > 1) parts.push(`${column} in (${is.map(quote).join(', ')})`);
  if (filter.has) parts.push(`${column} like ${quote(pattern(filter.has))}`);
  if (filter.min && isNumber(filter.min)) parts.push(`${column} >= ${filter.min.trim()}`);
  if (filter.max && isNumber(filter.max)) parts.push(`${column} <= ${filter.max.trim()}`);
  return parts;
}

// All filters and the expression that was typed, joined by `and`; '' where there are none. A typed `a or b` gets
// parentheses, because `and` binds tighter.
export function whereOf(filters, typed = '') {
  const parts = Object.entries(filters).flatMap(([column, filter]) => comparisons(column, filter));
  if (typed.trim()) parts.push(parts.length > 0 ? `(${typed.trim()})` : typed.trim());
  return parts.join(' and ');
}

// The filters as short texts, each with the filters that are left without it: for chips that can be removed.
export function chipsOf(filters) {
  const chips = [];
  for (const [column, filter] of Object.entries(filters)) {
    const without = (change) => prune({ ...filters, [column]: { ...filter, ...change } });
    for (const value of filter.is ?? [])
      chips.push({ column, text: value, rest: without({ is: filter.is.filter((other) => other !== value) }) });
    if (filter.has) chips.push({ column, text: `has “${filter.has}”`, rest: without({ has: '' }) });
    if (filter.min) chips.push({ column, text: `from ${filter.min}`, rest: without({ min: '' }) });
    if (filter.max) chips.push({ column, text: `up to ${filter.max}`, rest: without({ max: '' }) });
  }
  return chips;
}

// Without filters that let everything through.
export function prune(filters) {
  return Object.fromEntries(Object.entries(filters).filter(([, f]) => f.is?.length || f.has || f.min || f.max));
}
